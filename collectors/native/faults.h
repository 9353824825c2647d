/* Report and suppress exceptions from our hooks; propagate other BaseExceptions. */
#ifndef KEYLAG_FAULTS_H
#define KEYLAG_FAULTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Mark rare paths cold to keep the hot path contiguous in the instruction cache: the
 * interpreter evicts our code from the cache between two wrapped calls. */
#define COLD __attribute__((cold, noinline))

#pragma GCC visibility push(hidden)

extern PyObject *fault_handler; /* called with the wrapped call whose hook failed */

/* Report the raised exception to `fault_handler` and clear it; -1, still raised, if it
 * is not a subclass of Exception. */
COLD int report_and_suppress(PyObject *call);

/* Clear the raised exception; -1, still raised, if it is not a subclass of Exception. */
COLD int suppress_exception(void);

/* Clear and return the raised exception; NULL if there is none. */
PyObject *fetch_exception(void);

/* Raise a fetched exception again, unless another one has been raised since. */
void restore_exception(PyObject *raised);

#pragma GCC visibility pop

/* Release the result of a hook; report and suppress its exception if it failed. */
static inline int finish_hook(PyObject *result, PyObject *call)
{
    if (result == NULL)
        return report_and_suppress(call);
    Py_DECREF(result);
    return 0;
}

/* Call with an own reference, since the call may replace the callable. */
static inline PyObject *call_owned(PyObject *callable, PyObject *const *args,
                                   Py_ssize_t count)
{
    PyObject *owned = Py_NewRef(callable);
    PyObject *result = PyObject_Vectorcall(owned, args, count, NULL);
    Py_DECREF(owned);
    return result;
}

#endif
