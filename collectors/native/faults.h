/* An exception of our own code is told, and forgotten; what ends a program is not. */
#ifndef KEYLAG_FAULTS_H
#define KEYLAG_FAULTS_H

#include "compat.h"

/* What is done seldom is kept apart, so that what is done always lies together: a
 * request runs all of Python between two of our calls, and finds each line of this
 * code as far away as that has pushed it. */
#define SELDOM __attribute__((cold, noinline))

#pragma GCC visibility push(hidden)

extern PyObject *on_fault; /* called with what we were at */

/* Tell of an exception; -1, with it, if it is not ours to forget. */
SELDOM int unheard(PyObject *what);

#pragma GCC visibility pop

/* Return -1, with the exception, if there is no answer and it is not ours to forget. */
static inline int heard(PyObject *answer, PyObject *what)
{
    if (answer == NULL)
        return unheard(what);
    Py_DECREF(answer);
    return 0;
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
