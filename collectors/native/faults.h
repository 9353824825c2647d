/* An exception of our own code is told, and forgotten; what ends a program is not. */
#ifndef KEYLAG_FAULTS_H
#define KEYLAG_FAULTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What is done seldom is kept apart, so that what is done always lies together: a
 * request runs all of Python between two of our calls, and finds each line of this
 * code as far away as that has pushed it. */
#define SELDOM __attribute__((cold, noinline))

#pragma GCC visibility push(hidden)

extern PyObject *on_fault; /* called with what we were at */

/* Tell of an exception; -1, with it, if it is not ours to forget. */
SELDOM int unheard(PyObject *what);

/* Forget an exception; -1, with it, if it is not ours to forget. */
SELDOM int forget(void);

/* Return the exception that is set, and set none; NULL if there is none. */
PyObject *take_raised(void);

/* Raise again what was taken, unless something else is raised by now. */
void raise_again(PyObject *raised);

#pragma GCC visibility pop

/* Return -1, with the exception, if there is no answer and it is not ours to forget. */
static inline int heard(PyObject *answer, PyObject *what)
{
    if (answer == NULL)
        return unheard(what);
    Py_DECREF(answer);
    return 0;
}

/* Call what may be replaced while it runs. */
static inline PyObject *call_kept(PyObject *callable, PyObject *const *args,
                                  Py_ssize_t count)
{
    PyObject *kept = Py_NewRef(callable);
    PyObject *answer = PyObject_Vectorcall(kept, args, count, NULL);
    Py_DECREF(kept);
    return answer;
}

#endif
