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
    PyObject *result = call_deeper(self, args, flags, names);
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
        return call_deeper(self, args, flags, names);
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    unsigned int outside = clock->at;
    unsigned int inside = (outside & self->keep) | self->put;
    if (inside != outside)
        turn(clock, inside, self->call);
    if (self->before == Py_None || tell_before(self, clock, args, count, names) == 0)
        result = told_call(self, clock, args, flags, names);
    if (inside != outside)
        turn(clock, outside, NULL);
    Py_DECREF(clock);
    return result;
}

/* Return the layer of what is asked, a new reference; NULL if it has none, or with an
 * exception that is not ours to forget. */
static PyObject *layer_of(PyObject *asked)
{
    PyObject *layer = PyObject_GetAttr(asked, layer_name);
    if (layer == NULL)
        forget();
    if (layer == Py_None)
        Py_CLEAR(layer);
    return layer;
}

/* Asked_call is to `asked` what Watched_call is to `watch`; `put` is what is counted. */
static PyObject *Asked_call(PyObject *callable, PyObject *const *args, size_t flags,
                            PyObject *names)
{
    Watched *self = (Watched *)callable;
    PyObject *layer = NULL, *result = NULL;
    Clock *clock = running();
    if (clock != NULL && !is_asked(clock) && PyVectorcall_NARGS(flags))
        layer = layer_of(args[0]);
    if (layer == NULL) {
        if (!PyErr_Occurred())
            result = call_deeper(self, args, flags, names);
        Py_XDECREF(clock);
        return result;
    }
    Py_XSETREF(clock->layer, layer);
    count_one(clock, self->put);
    if (clock->writes)
        turn(clock, clock->at, self->call);
    result = told_call(self, clock, args, flags, names);
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

/* Return the call beneath all that watches it: a borrowed reference. */
static PyObject *innermost(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    while (Py_IS_TYPE(self, type))
        self = ((Watched *)self)->call;
    return self;
}

/* What it does not have itself, its code above all, is the call's. */
static PyObject *Watched_getattr(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(innermost(self), name);
}

/* A watched function says that it is one; what else is watched does not. */
static PyObject *Watched_class(PyObject *self, void *Py_UNUSED(closure))
{
    PyTypeObject *type = Py_TYPE(innermost(self));
    return Py_NewRef((PyObject *)(type == &PyFunction_Type ? type : Py_TYPE(self)));
}

/* It is copied and pickled as functions are, by name. */
static PyObject *Watched_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *Watched_copy(PyObject *self, PyObject *Py_UNUSED(memo))
{
    return Py_NewRef(self);
}

static PyObject *Watched_repr(Watched *self)
{
    return PyUnicode_FromFormat("<watched %R>", self->call);
}

#define EACH_OBJECT(of) \
    of(call) of(before) of(after) of(failed) of(dict) of(module) of(name) of(qualname) \
    of(doc)
COLLECTED(Watched, EACH_OBJECT, PyObject_ClearWeakRefs((PyObject *)self))

static PyObject *Watched_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                             PyObject *kwargs)
{
    static char *names[] = {"call", "keep", "put", "before", "after", "failed", NULL};
    PyObject *call, *before = Py_None, *after = Py_None, *failed = Py_None;
    unsigned int keep = CELLS - 1, put = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|IIOOO", names, &call, &keep,
                                     &put, &before, &after, &failed))
        return NULL;
    return new_watched(Watched_call, call, keep, put, before, after, failed);
}

static PyMemberDef Watched_members[] = {
#define NAMED(name) {"__" #name "__", T_OBJECT_EX, offsetof(Watched, name), 0, NULL},
    NAMED(module) NAMED(name) NAMED(qualname) NAMED(doc)
    {NULL},
};

static PyMethodDef Watched_methods[] = {
    {"__reduce__", Watched_reduce, METH_NOARGS, NULL},
    {"__copy__", Watched_copy, METH_NOARGS, NULL},
    {"__deepcopy__", Watched_copy, METH_O, NULL},
    {NULL},
};

static PyGetSetDef Watched_getset[] = {
    {"__class__", Watched_class, NULL, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyTypeObject WatchedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.watch",
    .tp_doc = "A watched call; see keylag_otel.pure.",
    .tp_basicsize = sizeof(Watched),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = Watched_new,
    .tp_dealloc = (destructor)Watched_dealloc,
    .tp_traverse = (traverseproc)Watched_traverse,
    .tp_dictoffset = offsetof(Watched, dict),
    .tp_weaklistoffset = offsetof(Watched, weakrefs),
    .tp_members = Watched_members,
    .tp_methods = Watched_methods,
    .tp_getset = Watched_getset,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Watched, vectorcall),
    .tp_descr_get = Watched_get,
    .tp_getattro = Watched_getattr,
    .tp_repr = (reprfunc)Watched_repr,
};

static PyObject *update_wrapper;

/* Give it the name, the text and the attributes of the call, as functools.wraps does. */
static PyObject *wrapping(Watched *self)
{
    PyObject *told[] = {(PyObject *)self, self->call};
    PyObject *updated = PyObject_Vectorcall(update_wrapper, told, 2, NULL);
    Py_DECREF(self);
    return updated;
}

PyObject *new_watched(vectorcallfunc way, PyObject *call, unsigned int keep,
                      unsigned int put, PyObject *before, PyObject *after,
                      PyObject *failed)
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
    return wrapping(self);
}

static PyObject *asked(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *call, *after, *failed;
    Py_ssize_t counted;
    if (!PyArg_ParseTuple(args, "OO&OO", &call, to_index, &counted, &after, &failed))
        return NULL;
    return new_watched(Asked_call, call, CELLS - 1, (unsigned int)counted, Py_None,
                       after, failed);
}

static PyMethodDef functions[] = {
    {"asked", asked, METH_VARARGS, "See keylag_otel.pure."},
    {NULL},
};

int add_watched(PyObject *module)
{
    if (import_name(&update_wrapper, "functools", "update_wrapper") < 0 ||
        PyModule_AddType(module, &WatchedType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
