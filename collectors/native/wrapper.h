/* Wrappers of host functions, and the hooks that they run. */
#ifndef KEYLAG_WRAPPER_H
#define KEYLAG_WRAPPER_H

#include "faults.h"
#include "hooks.h"

/* The kinds of single calls that read, and that write. */
typedef struct {
    Py_ssize_t read, write;
} Kinds;

/* A wrapper.  That of a context manager runs `before` when the body ends; `bits` of that
 * of a cache call is the index of the count. */
typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *call, *before, *after, *on_error;
    unsigned int mask, bits;
    Kinds kinds;
    PyObject *dict, *weakrefs, *module, *name, *qualname, *doc;
} TimedWrapper;

#pragma GCC visibility push(hidden)

/* Of calls that are not recorded. */
#define NO_KINDS ((Kinds){-1, -1})

/* Return a new wrapper; `vectorcall` implements its call. */
PyObject *new_wrapper(vectorcallfunc vectorcall, PyObject *call, unsigned int mask,
                      unsigned int bits, PyObject *before, PyObject *after,
                      PyObject *on_error, Kinds kinds);

/* Run a hook written in Python; -1 if it raised a BaseException that propagates. */
COLD int call_python_before(TimedWrapper *self, RequestTimer *timer,
                            PyObject *const *args, Py_ssize_t count, PyObject *names);
COLD int call_python_after(TimedWrapper *self, RequestTimer *timer,
                           PyObject *const *args, Py_ssize_t count, PyObject *result);

/* Run the error hook with the raised exception, which stays raised. */
COLD void call_python_on_error(TimedWrapper *self, RequestTimer *timer,
                               PyObject *const *args, Py_ssize_t count);

/* Return positional arguments as a tuple. */
COLD PyObject *tuple_of(PyObject *const *args, Py_ssize_t count);

#pragma GCC visibility pop

/* Call the original.  Python checks the recursion of its functions; the check here stops
 * recursion through C alone. */
static inline PyObject *call_original(TimedWrapper *self, PyObject *const *args,
                                      size_t flags, PyObject *names)
{
    if (Py_IS_TYPE(self->call, &PyFunction_Type))
        return ((PyFunctionObject *)self->call)
            ->vectorcall(self->call, args, flags, names);
    if (Py_EnterRecursiveCall(" while running a wrapped call") != 0)
        return NULL;
    PyObject *result = PyObject_Vectorcall(self->call, args, flags, names);
    Py_LeaveRecursiveCall();
    return result;
}

static inline int run_before(TimedWrapper *self, RequestTimer *timer,
                             PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Hook *hook = (Hook *)self->before;
    if (!Py_IS_TYPE(hook, &HookType))
        return call_python_before(self, timer, args, count, names);
    return hook->run(hook, timer, args, count, NULL) < 0
               ? report_and_suppress(self->call)
               : 0;
}

static inline int run_after(TimedWrapper *self, RequestTimer *timer,
                            PyObject *const *args, Py_ssize_t count, PyObject *result)
{
    Hook *hook = (Hook *)self->after;
    if (!Py_IS_TYPE(hook, &HookType))
        return call_python_after(self, timer, args, count, result);
    return hook->run(hook, timer, args, count, result) < 0
               ? report_and_suppress(self->call)
               : 0;
}

#endif
