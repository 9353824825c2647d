/* A watched call, and what its notes are told before and after it. */
#ifndef KEYLAG_WATCHED_H
#define KEYLAG_WATCHED_H

#include "faults.h"
#include "notes.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *call, *before, *after, *failed;
    unsigned int keep, put;
    PyObject *dict, *weakrefs, *module, *name, *qualname, *doc;
} Watched;

#pragma GCC visibility push(hidden)

/* Return a watched call that is called in this way. */
PyObject *new_watched(vectorcallfunc way, PyObject *call, unsigned int keep,
                      unsigned int put, PyObject *before, PyObject *after,
                      PyObject *failed);

/* Tell a note of Python's; -1 if what it raised is not ours to forget. */
SELDOM int call_before(Watched *self, Clock *clock, PyObject *const *args,
                       Py_ssize_t count, PyObject *names);
SELDOM int call_after(Watched *self, Clock *clock, PyObject *const *args,
                      Py_ssize_t count, PyObject *result);

/* Tell what a call raised, which is raised on. */
SELDOM void tell_failed(Watched *self, Clock *clock, PyObject *const *args,
                        Py_ssize_t count);

/* Return arguments as Python has them. */
SELDOM PyObject *tuple_of(PyObject *const *args, Py_ssize_t count);

#pragma GCC visibility pop

/* Make the call.  What calls itself through nothing but C has an end, too. */
static inline PyObject *call_deeper(Watched *self, PyObject *const *args, size_t flags,
                                    PyObject *names)
{
    if (Py_EnterRecursiveCall(" while making a watched call") != 0)
        return NULL;
    PyObject *result = PyObject_Vectorcall(self->call, args, flags, names);
    Py_LeaveRecursiveCall();
    return result;
}

static inline int tell_before(Watched *self, Clock *clock, PyObject *const *args,
                              Py_ssize_t count, PyObject *names)
{
    Note *note = (Note *)self->before;
    if (!Py_IS_TYPE(note, &NoteType))
        return call_before(self, clock, args, count, names);
    return note->tell(note, clock, args, count, NULL) < 0 ? unheard(self->call) : 0;
}

static inline int tell_after(Watched *self, Clock *clock, PyObject *const *args,
                             Py_ssize_t count, PyObject *result)
{
    Note *note = (Note *)self->after;
    if (!Py_IS_TYPE(note, &NoteType))
        return call_after(self, clock, args, count, result);
    return note->tell(note, clock, args, count, result) < 0 ? unheard(self->call) : 0;
}

#endif
