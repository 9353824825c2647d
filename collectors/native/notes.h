/* Those notes that are told most, told without a call of Python's. */
#ifndef KEYLAG_NOTES_H
#define KEYLAG_NOTES_H

#include "clock.h"

typedef struct Note Note;

/* A note as told by Watched_call; before the call there is no result. */
typedef PyObject *(*Telling)(Note *, Clock *, PyObject *const *args, Py_ssize_t count,
                             PyObject *result);

struct Note {
    PyObject_HEAD
    Telling tell;
    PyObject *expected, *numbers;
};

#pragma GCC visibility push(hidden)

/* Add one to what a clock counts; returns None, or NULL with an exception. */
PyObject *in_counts(Clock *clock, Py_ssize_t index);

extern PyTypeObject NoteType;
extern PyObject *layer_name; /* the attribute that says which layer something is */

#pragma GCC visibility pop

#endif
