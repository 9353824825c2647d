/* A watched call, and what its notes are told before and after it. */
#ifndef KEYLAG_WATCHED_H
#define KEYLAG_WATCHED_H

#include "faults.h"
#include "notes.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *call, *before, *after, *failed;
    int keep, put;
} Watched;

#pragma GCC visibility push(hidden)

/* Return a watched call that is called in this way. */
PyObject *new_watched(vectorcallfunc way, PyObject *call, int keep, int put,
                      PyObject *before, PyObject *after, PyObject *failed);

#pragma GCC visibility pop

static inline PyObject *tuple_of(PyObject *const *args, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t index = 0; tuple != NULL && index < count; index++)
        PyTuple_SET_ITEM(tuple, index, Py_NewRef(args[index]));
    return tuple;
}

static inline PyObject *dict_of(PyObject *const *values, PyObject *names)
{
    PyObject *dict = PyDict_New();
    Py_ssize_t count = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t index = 0; dict != NULL && index < count; index++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, index), values[index]) < 0)
            Py_CLEAR(dict);
    return dict;
}

static inline int tell_before(Watched *self, Clock *clock, PyObject *const *args,
                              Py_ssize_t count, PyObject *names)
{
    if (Py_IS_TYPE(self->before, &NoteType)) {
        Note *note = (Note *)self->before;
        return heard(note->tell(note, clock, args, count, NULL), self->call);
    }
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count),
                        dict_of(args + count, names)};
    PyObject *answer = NULL;
    if (told[1] != NULL && told[2] != NULL)
        answer = PyObject_Vectorcall(self->before, told, 3, NULL);
    Py_XDECREF(told[1]);
    Py_XDECREF(told[2]);
    return heard(answer, self->call);
}

static inline int tell_after(Watched *self, Clock *clock, PyObject *const *args,
                             Py_ssize_t count, PyObject *result)
{
    if (Py_IS_TYPE(self->after, &NoteType)) {
        Note *note = (Note *)self->after;
        return heard(note->tell(note, clock, args, count, result), self->call);
    }
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count), result};
    PyObject *answer = NULL;
    if (told[1] != NULL)
        answer = PyObject_Vectorcall(self->after, told, 3, NULL);
    Py_XDECREF(told[1]);
    return heard(answer, self->call);
}

static inline void tell_failed(Watched *self, Clock *clock, PyObject *const *args,
                               Py_ssize_t count)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count), value};
    PyObject *answer = NULL;
    if (told[1] != NULL)
        answer = PyObject_Vectorcall(self->failed, told, 3, NULL);
    Py_XDECREF(told[1]);
    heard(answer, self->call);
    raise_again(type, value, traceback);
}

#endif
