/* The calls themselves: their arguments are handed on where they lie, without a
 * tuple or a dictionary of our own.
 */
#include "module.h"
#include "watched.h"

#include <structmember.h>

/* Make the call, and tell what came of it. */
static inline PyObject *told_call(Watched *self, Clock *clock, PyObject *const *args,
                                  size_t flags, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *result = PyObject_Vectorcall(self->call, args, flags, names);
    if (result == NULL && self->failed != Py_None)
        tell_failed(self, clock, args, count);
    else if (result != NULL && self->after != Py_None &&
             tell_after(self, clock, args, count, result) < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *Watched_call(PyObject *callable, PyObject *const *args, size_t flags,
                              PyObject *names)
{
    Watched *self = (Watched *)callable;
    PyObject *result = NULL;
    Clock *clock = running();
    if (clock == NULL)
        return PyObject_Vectorcall(self->call, args, flags, names);
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    int outside = clock->at;
    int inside = (outside & self->keep) | self->put;
    if (inside != outside)
        turn(clock, inside, self->call);
    if (self->before == Py_None || tell_before(self, clock, args, count, names) == 0)
        result = told_call(self, clock, args, flags, names);
    if (inside != outside)
        turn(clock, outside, NULL);
    Py_DECREF(clock);
    return result;
}

/* Asked_call is to `asked` what Watched_call is to `watch`; `put` is what is counted. */
static PyObject *Asked_call(PyObject *callable, PyObject *const *args, size_t flags,
                            PyObject *names)
{
    Watched *self = (Watched *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *layer = NULL;
    Clock *clock = running();
    if (count && clock != NULL && !is_asked(clock) &&
        (layer = PyObject_GetAttr(args[0], layer_name)) == NULL)
        PyErr_Clear();
    if (layer == NULL) {
        Py_XDECREF(clock);
        return PyObject_Vectorcall(self->call, args, flags, names);
    }
    Py_XSETREF(clock->layer, layer);
    clock->counts[self->put]++;
    if (clock->writes)
        turn(clock, clock->at, self->call);
    PyObject *result = told_call(self, clock, args, flags, names);
    Py_CLEAR(clock->layer);
    if (clock->writes)
        turn(clock, clock->at, NULL);
    Py_DECREF(clock);
    return result;
}

static PyObject *Watched_get(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

/* What it does not have itself, its name and its text above all, is the call's. */
static PyObject *Watched_getattr(PyObject *self, PyObject *name)
{
    PyObject *call = ((Watched *)self)->call;
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
        return Py_NewRef(call);
    return PyObject_GetAttr(call, name);
}

static int Watched_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((Watched *)self)->call, name, value);
}

static PyObject *Watched_repr(Watched *self)
{
    return PyUnicode_FromFormat("<watched %R>", self->call);
}

#define EACH_OBJECT(of) of(call) of(before) of(after) of(failed)
COLLECTED(Watched, EACH_OBJECT)

static PyObject *Watched_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                             PyObject *kwargs)
{
    static char *names[] = {"call", "keep", "put", "before", "after", "failed", NULL};
    PyObject *call, *before = Py_None, *after = Py_None, *failed = Py_None;
    int keep = CELLS - 1, put = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|iiOOO", names, &call, &keep,
                                     &put, &before, &after, &failed))
        return NULL;
    return new_watched(Watched_call, call, keep, put, before, after, failed);
}

static PyTypeObject WatchedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.watch",
    .tp_doc = "A watched call; see keylag_otel.pure.",
    .tp_basicsize = sizeof(Watched),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = Watched_new,
    .tp_dealloc = dealloc,
    .tp_traverse = (traverseproc)Watched_traverse,
    .tp_clear = (inquiry)Watched_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Watched, vectorcall),
    .tp_descr_get = Watched_get,
    .tp_getattro = Watched_getattr,
    .tp_setattro = Watched_setattr,
    .tp_repr = (reprfunc)Watched_repr,
};

PyObject *new_watched(vectorcallfunc way, PyObject *call, int keep, int put,
                      PyObject *before, PyObject *after, PyObject *failed)
{
    Watched *self = (Watched *)WatchedType.tp_alloc(&WatchedType, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = way;
    self->call = Py_NewRef(call);
    self->before = Py_NewRef(before);
    self->after = Py_NewRef(after);
    self->failed = Py_NewRef(failed);
    self->keep = keep & (CELLS - 1);
    self->put = put & (CELLS - 1);
    return (PyObject *)self;
}

static PyObject *asked(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *call, *after, *failed;
    int counted;
    if (!PyArg_ParseTuple(args, "OiOO", &call, &counted, &after, &failed))
        return NULL;
    if (counted < 0 || counted >= MOST) {
        PyErr_SetString(PyExc_ValueError, "asked(call, counted, after, failed)");
        return NULL;
    }
    return new_watched(Asked_call, call, CELLS - 1, counted, Py_None, after, failed);
}

static PyMethodDef functions[] = {
    {"asked", asked, METH_VARARGS, "See keylag_otel.pure."},
    {NULL},
};

int add_watched(PyObject *module)
{
    if (PyModule_AddType(module, &WatchedType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
