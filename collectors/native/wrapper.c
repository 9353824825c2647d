/* Wrappers pass arguments on by vectorcall, without building a tuple or dictionary. */
#include "module.h"
#include "wrapper.h"

#include <structmember.h>

/* Call the original, then its after or error hook. */
static inline PyObject *call_with_hooks(TimedWrapper *self, RequestTimer *timer,
                                        PyObject *const *args, size_t flags,
                                        PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *result = call_original(self, args, flags, names);
    if (result == NULL && self->on_error != Py_None)
        call_python_on_error(self, timer, args, count);
    else if (result != NULL && self->after != Py_None &&
             run_after(self, timer, args, count, result) < 0)
        Py_CLEAR(result);
    return result;
}

/* Return the kind of a call, whose third argument may be a statement: it writes if it
 * begins with a letter of INSERT, UPDATE or DELETE. */
static inline Py_ssize_t kind_of(const TimedWrapper *self, PyObject *const *args,
                                 Py_ssize_t count)
{
    if (count < 3 || !PyUnicode_Check(args[2]) || PyUnicode_GET_LENGTH(args[2]) == 0)
        return self->kinds.read;
    switch (PyUnicode_READ_CHAR(args[2], 0)) {
    case 'I': case 'U': case 'D':
    case 'i': case 'u': case 'd':
        return self->kinds.write;
    default:
        return self->kinds.read;
    }
}

static PyObject *TimedWrapper_call(PyObject *callable, PyObject *const *args,
                                   size_t flags, PyObject *names)
{
    TimedWrapper *self = (TimedWrapper *)callable;
    PyObject *result = NULL;
    RequestTimer *timer = current_timer();
    if (timer == NULL)
        return call_original(self, args, flags, names);
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    unsigned int outside = timer->current_cell;
    unsigned int inside = (outside & self->mask) | self->bits;
    if (inside != outside)
        switch_cell(timer, inside, self->call);
    long long started_at = timer->last_tick;
    if (self->before == Py_None || run_before(self, timer, args, count, names) == 0)
        result = call_with_hooks(self, timer, args, flags, names);
    if (inside != outside) {
        switch_cell(timer, outside, NULL);
        if (self->kinds.read >= 0)
            record_call(timer, kind_of(self, args, count), started_at);
    }
    Py_DECREF(timer);
    return result;
}

/* Return the layer of a backend: a new reference, or NULL if it has none or if a
 * BaseException propagates. */
static PyObject *find_layer(PyObject *backend)
{
    PyObject *cache_layer = PyObject_GetAttr(backend, layer_name);
    if (cache_layer == NULL)
        suppress_exception();
    if (cache_layer == Py_None)
        Py_CLEAR(cache_layer);
    return cache_layer;
}

/* The call of what `wrap_cache_call` returns; `bits` is the index of the count. */
static PyObject *CacheCall_call(PyObject *callable, PyObject *const *args, size_t flags,
                                PyObject *names)
{
    TimedWrapper *self = (TimedWrapper *)callable;
    PyObject *cache_layer = NULL, *result = NULL;
    RequestTimer *timer = current_timer();
    if (timer != NULL && !has_cache_layer(timer) && PyVectorcall_NARGS(flags))
        cache_layer = find_layer(args[0]);
    if (cache_layer == NULL) {
        if (!PyErr_Occurred())
            result = call_original(self, args, flags, names);
        Py_XDECREF(timer);
        return result;
    }
    Py_XSETREF(timer->cache_layer, cache_layer);
    count_if_present(timer, self->bits);
    switch_cell(timer, timer->current_cell, self->call);
    long long started_at = timer->last_tick;
    result = call_with_hooks(self, timer, args, flags, names);
    Py_CLEAR(timer->cache_layer);
    switch_cell(timer, timer->current_cell, NULL);
    record_call(timer, self->kinds.read, started_at);
    Py_DECREF(timer);
    return result;
}

static PyObject *TimedWrapper_get(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

/* Return the original call beneath all wrappers: a borrowed reference. */
static PyObject *innermost(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    while (Py_IS_TYPE(self, type))
        self = ((TimedWrapper *)self)->call;
    return self;
}

/* Other attributes, such as __code__, are those of the original. */
static PyObject *TimedWrapper_getattr(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(innermost(self), name);
}

/* The wrapper of a function claims to be a function, for inspect and isinstance. */
static PyObject *TimedWrapper_class(PyObject *self, void *Py_UNUSED(closure))
{
    PyTypeObject *type = Py_TYPE(innermost(self));
    return Py_NewRef((PyObject *)(type == &PyFunction_Type ? type : Py_TYPE(self)));
}

/* Copy and pickle by name, as functions are. */
static PyObject *TimedWrapper_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *TimedWrapper_copy(PyObject *self, PyObject *Py_UNUSED(memo))
{
    return Py_NewRef(self);
}

static PyObject *TimedWrapper_repr(TimedWrapper *self)
{
    return PyUnicode_FromFormat("<timed wrapper of %R>", self->call);
}

#define EACH_OBJECT(of) \
    of(call) of(before) of(after) of(on_error) of(dict) of(module) of(name) \
        of(qualname) of(doc)
GC_METHODS(TimedWrapper, EACH_OBJECT, PyObject_ClearWeakRefs((PyObject *)self))

/* Converter for PyArg_Parse: None, or a tuple of two kinds. */
static int to_kinds(PyObject *given, void *kinds)
{
    Kinds *read = kinds;
    if (given == Py_None)
        return 1;
    if (PyTuple_Check(given))
        return PyArg_ParseTuple(given, "O&O&", to_index, &read->read, to_index,
                                &read->write);
    PyErr_SetString(PyExc_TypeError, "expected a tuple of two kinds");
    return 0;
}

static PyObject *TimedWrapper_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                                  PyObject *kwargs)
{
    static char *names[] = {"call",  "mask",     "bits",  "before",
                            "after", "on_error", "kinds", NULL};
    PyObject *call, *before = Py_None, *after = Py_None, *on_error = Py_None;
    unsigned int mask = CELLS - 1, bits = 0;
    Kinds kinds = NO_KINDS;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|IIOOOO&", names, &call, &mask,
                                     &bits, &before, &after, &on_error, to_kinds,
                                     &kinds))
        return NULL;
    return new_wrapper(TimedWrapper_call, call, mask, bits, before, after, on_error,
                       kinds);
}

static PyMemberDef TimedWrapper_members[] = {
#define NAMED(name) \
    {"__" #name "__", T_OBJECT_EX, offsetof(TimedWrapper, name), 0, NULL},
    NAMED(module) NAMED(name) NAMED(qualname) NAMED(doc){NULL},
};

static PyMethodDef TimedWrapper_methods[] = {
    {"__reduce__", TimedWrapper_reduce, METH_NOARGS, NULL},
    {"__copy__", TimedWrapper_copy, METH_NOARGS, NULL},
    {"__deepcopy__", TimedWrapper_copy, METH_O, NULL},
    {NULL},
};

static PyGetSetDef TimedWrapper_getset[] = {
    {"__class__", TimedWrapper_class, NULL, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyTypeObject TimedWrapperType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._native.wrap",
    .tp_doc = SIGNATURE("wrap(call, mask=255, bits=0, before=None, after=None, "
                        "on_error=None, kinds=None)",
                        "wrapper"),
    .tp_basicsize = sizeof(TimedWrapper),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = TimedWrapper_new,
    .tp_dealloc = (destructor)TimedWrapper_dealloc,
    .tp_traverse = (traverseproc)TimedWrapper_traverse,
    .tp_dictoffset = offsetof(TimedWrapper, dict),
    .tp_weaklistoffset = offsetof(TimedWrapper, weakrefs),
    .tp_members = TimedWrapper_members,
    .tp_methods = TimedWrapper_methods,
    .tp_getset = TimedWrapper_getset,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(TimedWrapper, vectorcall),
    .tp_descr_get = TimedWrapper_get,
    .tp_getattro = TimedWrapper_getattr,
    .tp_repr = (reprfunc)TimedWrapper_repr,
};

static PyObject *update_wrapper;

/* Copy name, docstring and attributes of the original, as functools.wraps does. */
static PyObject *update_wrapper_of(TimedWrapper *self)
{
    PyObject *args[] = {(PyObject *)self, self->call};
    PyObject *updated = PyObject_Vectorcall(update_wrapper, args, 2, NULL);
    Py_DECREF(self);
    return updated;
}

PyObject *new_wrapper(vectorcallfunc vectorcall, PyObject *call, unsigned int mask,
                      unsigned int bits, PyObject *before, PyObject *after,
                      PyObject *on_error, Kinds kinds)
{
    TimedWrapper *self =
        (TimedWrapper *)TimedWrapperType.tp_alloc(&TimedWrapperType, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = vectorcall;
    self->call = Py_NewRef(call);
    self->before = Py_NewRef(before);
    self->after = Py_NewRef(after);
    self->on_error = Py_NewRef(on_error);
    self->mask = mask & (CELLS - 1);
    self->bits = bits & (CELLS - 1);
    self->kinds = kinds;
    return update_wrapper_of(self);
}

static PyObject *wrap_cache_call(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *call, *after, *on_error;
    Py_ssize_t count_index, kind;
    if (!PyArg_ParseTuple(args, "OO&O&OO", &call, to_index, &count_index, to_index,
                          &kind, &after, &on_error))
        return NULL;
    return new_wrapper(CacheCall_call, call, CELLS - 1, (unsigned int)count_index,
                       Py_None, after, on_error, (Kinds){kind, kind});
}

static PyMethodDef functions[] = {
    {"wrap_cache_call", wrap_cache_call, METH_VARARGS,
     SIGNATURE("wrap_cache_call(call, count_index, kind, after, on_error, /)",
               "wrapper")},
    {NULL},
};

int add_wrapper(PyObject *module)
{
    if (import_name(&update_wrapper, "functools", "update_wrapper") < 0 ||
        PyModule_AddType(module, &TimedWrapperType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
