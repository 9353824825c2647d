/* Calls of hooks that are written in Python. */
#include "wrapper.h"

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

int call_python_before(TimedWrapper *self, RequestTimer *timer, PyObject *const *args,
                       Py_ssize_t count, PyObject *names)
{
    PyObject *hook_args[] = {(PyObject *)timer, tuple_of(args, count),
                             dict_of(args + count, names)};
    PyObject *outcome = NULL;
    if (hook_args[1] != NULL && hook_args[2] != NULL)
        outcome = PyObject_Vectorcall(self->before, hook_args, 3, NULL);
    Py_XDECREF(hook_args[1]);
    Py_XDECREF(hook_args[2]);
    return finish_hook(outcome, self->call);
}

int call_python_after(TimedWrapper *self, RequestTimer *timer, PyObject *const *args,
                      Py_ssize_t count, PyObject *result)
{
    PyObject *hook_args[] = {(PyObject *)timer, tuple_of(args, count), result};
    PyObject *outcome = NULL;
    if (hook_args[1] != NULL)
        outcome = PyObject_Vectorcall(self->after, hook_args, 3, NULL);
    Py_XDECREF(hook_args[1]);
    return finish_hook(outcome, self->call);
}

void call_python_on_error(TimedWrapper *self, RequestTimer *timer,
                          PyObject *const *args, Py_ssize_t count)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyObject *raised = fetch_exception();
    PyObject *hook_args[] = {(PyObject *)timer, tuple_of(args, count), raised};
    PyObject *outcome = NULL;
    if (hook_args[1] != NULL)
        outcome = PyObject_Vectorcall(self->on_error, hook_args, 3, NULL);
    Py_XDECREF(hook_args[1]);
    finish_hook(outcome, self->call);
    restore_exception(raised);
}
