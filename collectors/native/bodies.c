/* The body of a context manager: keylag_otel.pure.bodies says what is watched. */
#include "module.h"
#include "watched.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *context, *args;
    Watched *watched;
    Clock *clock; /* while the body runs */
    int outside;
} Body;

static PyTypeObject BodyType;
static PyObject *enter_name, *exit_name;

static PyObject *body_of(Watched *watched, PyObject *context, PyObject *const *args,
                         Py_ssize_t count)
{
    Body *self = (Body *)BodyType.tp_alloc(&BodyType, 0);
    if (self == NULL)
        return NULL;
    self->context = Py_NewRef(context);
    self->watched = (Watched *)Py_NewRef(watched);
    self->args = tuple_of(args, watched->before == Py_None ? 0 : count);
    if (self->args == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *Bodied_call(PyObject *callable, PyObject *const *args, size_t flags,
                             PyObject *names)
{
    Watched *self = (Watched *)callable;
    PyObject *context = call_deeper(self, args, flags, names);
    Clock *clock = context == NULL ? NULL : running();
    if (clock == NULL)
        return context;
    Py_DECREF(clock);
    PyObject *body = body_of(self, context, args, PyVectorcall_NARGS(flags));
    Py_DECREF(context);
    return body;
}

static PyObject *Body_enter(Body *self, PyObject *Py_UNUSED(none))
{
    Clock *clock = running();
    if (clock == NULL)
        return PyObject_CallMethodNoArgs(self->context, enter_name);
    int inside = (clock->at & self->watched->keep) | self->watched->put;
    self->outside = turn(clock, inside, self->watched->call);
    PyObject *entered = PyObject_CallMethodNoArgs(self->context, enter_name);
    if (entered == NULL)
        turn(clock, self->outside, NULL);
    else
        Py_XSETREF(self->clock, (Clock *)Py_NewRef(clock));
    Py_DECREF(clock);
    return entered;
}

/* What was raised in the body waits; -1 if another exception is to be raised instead. */
static int leave(Body *self, Clock *entered)
{
    Watched *watched = self->watched;
    PyObject *raised = take_raised();
    Clock *clock = running();
    int failed = 0;
    if (clock == entered) { /* one that was abandoned may be left when that is over */
        turn(clock, self->outside, NULL);
        if (watched->before != Py_None)
            failed = tell_before(watched, clock, &PyTuple_GET_ITEM(self->args, 0),
                                 PyTuple_GET_SIZE(self->args), NULL);
    }
    Py_XDECREF(clock);
    raise_again(raised);
    return failed;
}

static PyObject *Body_exit(Body *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "__exit__(type, value, traceback)");
        return NULL;
    }
    PyObject *told[] = {self->context, args[0], args[1], args[2]};
    Clock *entered = self->clock;
    self->clock = NULL;
    PyObject *left = PyObject_VectorcallMethod(exit_name, told, 4, NULL);
    if (entered != NULL && leave(self, entered) < 0)
        Py_CLEAR(left);
    Py_XDECREF(entered);
    return left;
}

#define EACH_OBJECT(of) of(context) of(args) of(watched) of(clock)
COLLECTED(Body, EACH_OBJECT, (void)0)

static PyMethodDef Body_methods[] = {
    {"__enter__", (PyCFunction)Body_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))Body_exit, METH_FASTCALL, NULL},
    {NULL},
};

static PyTypeObject BodyType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Body",
    .tp_basicsize = sizeof(Body),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = (destructor)Body_dealloc,
    .tp_traverse = (traverseproc)Body_traverse,
    .tp_methods = Body_methods,
};

static PyObject *watch_body(PyObject *Py_UNUSED(module), PyObject *args,
                            PyObject *kwargs)
{
    static char *names[] = {"call", "keep", "put", "left", NULL};
    PyObject *call, *left = Py_None;
    unsigned int keep, put;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OII|O", names, &call, &keep, &put,
                                     &left))
        return NULL;
    return new_watched(Bodied_call, call, keep, put, left, Py_None, Py_None);
}

static PyMethodDef functions[] = {
    {"watch_body", (PyCFunction)(void (*)(void))watch_body,
     METH_VARARGS | METH_KEYWORDS, "See keylag_otel.pure."},
    {NULL},
};

int add_bodies(PyObject *module)
{
    if (intern(&enter_name, "__enter__") < 0 || intern(&exit_name, "__exit__") < 0 ||
        PyType_Ready(&BodyType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
