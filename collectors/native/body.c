/* An answer while it is sent: keylag_otel.pure.body says what it does. */
#include "clock.h"
#include "module.h"

typedef struct {
    PyObject_HEAD
    PyObject *body, *parts, *finish;
    Clock *clock;
} Body;

static int Body_init(Body *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"body", "clock", "finish", NULL};
    PyObject *body, *clock, *finish;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O", names, &body, &ClockType,
                                     &clock, &finish))
        return -1;
    Py_XSETREF(self->body, Py_NewRef(body));
    Py_XSETREF(self->clock, (Clock *)Py_NewRef(clock));
    Py_XSETREF(self->finish, Py_NewRef(finish));
    return 0;
}

static int activate(PyObject *clock)
{
    PyObject *token = PyContextVar_Set(active, clock);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

/* Do a step of the answer's making, and book its time whatever comes of it. */
static PyObject *measured(Body *self, PyObject *(*step)(Body *))
{
    PyObject *type, *value, *traceback;
    self->clock->mark = now();
    if (activate((PyObject *)self->clock) < 0)
        return NULL;
    PyObject *answer = step(self);
    PyErr_Fetch(&type, &value, &traceback);
    if (activate(Py_None) < 0)
        PyErr_Clear();
    book(self->clock);
    PyErr_Restore(type, value, traceback);
    return answer;
}

static PyObject *next_part(Body *self)
{
    if (self->parts == NULL && (self->parts = PyObject_GetIter(self->body)) == NULL)
        return NULL;
    return PyIter_Next(self->parts);
}

static PyObject *close_body(Body *self)
{
    PyObject *close = PyObject_GetAttrString(self->body, "close");
    if (close == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *closed = close == NULL ? NULL : PyObject_CallNoArgs(close);
    Py_XDECREF(close);
    return closed;
}

static PyObject *Body_next(Body *self)
{
    return measured(self, next_part);
}

static PyObject *Body_close(Body *self, PyObject *Py_UNUSED(none))
{
    PyObject *type, *value, *traceback;
    PyObject *closed = measured(self, close_body);
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *finished = PyObject_CallNoArgs(self->finish);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    Py_XDECREF(finished);
    return closed;
}

#define EACH_OBJECT(of) of(body) of(parts) of(finish) of(clock)
COLLECTED(Body, EACH_OBJECT)

static PyMethodDef Body_methods[] = {
    {"close", (PyCFunction)Body_close, METH_NOARGS, NULL},
    {NULL},
};

static PyTypeObject BodyType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Body",
    .tp_doc = "An answer while it is sent; see keylag_otel.pure.body.",
    .tp_basicsize = sizeof(Body),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Body_init,
    .tp_dealloc = dealloc,
    .tp_traverse = (traverseproc)Body_traverse,
    .tp_clear = (inquiry)Body_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)Body_next,
    .tp_methods = Body_methods,
};

int add_body(PyObject *module)
{
    return PyModule_AddType(module, &BodyType);
}
