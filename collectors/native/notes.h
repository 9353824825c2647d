/* Those notes that are told most, told without a call of Python's. */
#ifndef KEYLAG_NOTES_H
#define KEYLAG_NOTES_H

#include "clock.h"

typedef struct Note Note;

/* A note as told by Watched_call, -1 with an exception; before the call there is no
 * result. */
typedef int (*Telling)(Note *, Clock *, PyObject *const *args, Py_ssize_t count,
                       PyObject *result);

struct Note {
    PyObject_HEAD
    Telling tell;
    PyObject *expected, *source;
    long numbers[2];
};

#pragma GCC visibility push(hidden)

extern PyTypeObject NoteType;
extern PyObject *layer_name; /* the attribute that says which layer something is */

#pragma GCC visibility pop

#endif
