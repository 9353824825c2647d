/* Notes of Python's own, told seldom. */
#include "watched.h"

PyObject *tuple_of(PyObject *const *args, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t index = 0; tuple != NULL && index < count; index++)
        PyTuple_SET_ITEM(tuple, index, Py_NewRef(args[index]));
    return tuple;
}

static PyObject *dict_of(PyObject *const *values, PyObject *names)
{
    PyObject *dict = PyDict_New();
    Py_ssize_t count = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t index = 0; dict != NULL && index < count; index++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, index), values[index]) < 0)
            Py_CLEAR(dict);
    return dict;
}

int call_before(Watched *self, Clock *clock, PyObject *const *args, Py_ssize_t count,
                PyObject *names)
{
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count),
                        dict_of(args + count, names)};
    PyObject *answer = NULL;
    if (told[1] != NULL && told[2] != NULL)
        answer = PyObject_Vectorcall(self->before, told, 3, NULL);
    Py_XDECREF(told[1]);
    Py_XDECREF(told[2]);
    return heard(answer, self->call);
}

int call_after(Watched *self, Clock *clock, PyObject *const *args, Py_ssize_t count,
               PyObject *result)
{
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count), result};
    PyObject *answer = NULL;
    if (told[1] != NULL)
        answer = PyObject_Vectorcall(self->after, told, 3, NULL);
    Py_XDECREF(told[1]);
    return heard(answer, self->call);
}

void tell_failed(Watched *self, Clock *clock, PyObject *const *args, Py_ssize_t count)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyObject *raised = take_raised();
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count), raised};
    PyObject *answer = NULL;
    if (told[1] != NULL)
        answer = PyObject_Vectorcall(self->failed, told, 3, NULL);
    Py_XDECREF(told[1]);
    heard(answer, self->call);
    raise_again(raised);
}
