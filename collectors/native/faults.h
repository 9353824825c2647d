/* An exception of our own code is told, and forgotten; what ends a program is not. */
#ifndef KEYLAG_FAULTS_H
#define KEYLAG_FAULTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#pragma GCC visibility push(hidden)

extern PyObject *on_fault; /* called with what we were at */

#pragma GCC visibility pop

/* Return -1, with the exception, if there is no answer and it is not ours to forget. */
static inline int heard(PyObject *answer, PyObject *what)
{
    if (answer == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        answer = PyObject_CallOneArg(on_fault, what);
    }
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

/* Raise again what was fetched, unless something else is raised by now. */
static inline void raise_again(PyObject *type, PyObject *value, PyObject *traceback)
{
    if (!PyErr_Occurred()) {
        PyErr_Restore(type, value, traceback);
        return;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

#endif
