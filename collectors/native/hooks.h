/* Hooks in C, which wrappers run without a Python call. */
#ifndef KEYLAG_HOOKS_H
#define KEYLAG_HOOKS_H

#include "request_timer.h"

typedef struct Hook Hook;

/* Runs a hook; -1 with an exception on failure.  `result` is NULL before the call. */
typedef int (*HookFunction)(Hook *, RequestTimer *, PyObject *const *args,
                            Py_ssize_t count, PyObject *result);

/* A hook with its arguments.  `expected` is the object that means a miss, or the
 * dictionary of known statements; `source` returns counter ids, or has the names of
 * annotations; `layer` is that of the backend of a memoized function; `numbers` are
 * counter ids, or the index of an argument or count. */
struct Hook {
    PyObject_HEAD HookFunction run;
    PyObject *expected, *source, *layer;
    long numbers[3];
};

#pragma GCC visibility push(hidden)

extern PyTypeObject HookType;
extern PyObject *layer_name; /* the attribute of a backend that holds its cache layer */

#pragma GCC visibility pop

#endif
