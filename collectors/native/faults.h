/* What is raised in our own code is told, and forgotten. */
#ifndef KEYLAG_FAULTS_H
#define KEYLAG_FAULTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#pragma GCC visibility push(hidden)

extern PyObject *on_fault; /* called with what we were at */

#pragma GCC visibility pop

static inline void heard(PyObject *answer, PyObject *what)
{
    if (answer == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        answer = PyObject_CallOneArg(on_fault, what);
    }
    if (answer == NULL)
        PyErr_Clear();
    Py_XDECREF(answer);
}

#endif
