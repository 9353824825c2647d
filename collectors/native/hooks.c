/* The hooks and their constructors; documented in keylag_otel.pure.hooks. */
#include "module.h"
#include "hooks.h"

PyObject *layer_name;
static PyObject *name_name, *rowcount_name;

/* The first members of a cache layer, a tuple; and the numbers of a memoized function. */
enum { HIT, MISS, RECEIVED, LOCAL_HIT = 2 };

/* Increment the counter whose id is a member of a cache layer. */
static int increment_layer_counter(RequestTimer *timer, PyObject *cache_layer,
                                   Py_ssize_t member, long long sum)
{
    if (cache_layer == NULL || !PyTuple_Check(cache_layer) ||
        PyTuple_GET_SIZE(cache_layer) <= member) {
        PyErr_SetString(PyExc_TypeError, "expected a cache layer");
        return -1;
    }
    PyObject *counter = PyTuple_GET_ITEM(cache_layer, member);
    /* Other objects may run Python. */
    long number = PyLong_Check(counter) ? PyLong_AsLong(counter) : LONG_MIN;
    return number == -1 && PyErr_Occurred() ? -1 : increment(timer, number, sum);
}

/* `result` is NULL if the hook runs before the call. */
static int count_cache_value(Hook *self, RequestTimer *timer, PyObject *result)
{
    if (result == Py_None || result == self->expected)
        return increment_layer_counter(timer, timer->cache_layer, MISS, 1);
    if (increment_layer_counter(timer, timer->cache_layer, HIT, 1) < 0)
        return -1;
    if (result == NULL || !PyBytes_CheckExact(result))
        return 0;
    return increment_layer_counter(timer, timer->cache_layer, RECEIVED,
                                   PyBytes_GET_SIZE(result));
}

/* A list holds the results of several look-ups. */
static int count_cache_results(Hook *self, RequestTimer *timer,
                               PyObject *const *Py_UNUSED(args),
                               Py_ssize_t Py_UNUSED(count), PyObject *result)
{
    Py_XSETREF(timer->last_layer, Py_XNewRef(timer->cache_layer));
    if (result == NULL || !PyList_Check(result))
        return count_cache_value(self, timer, result);
    int failed = 0;
    for (Py_ssize_t index = 0; !failed && index < PyList_GET_SIZE(result); index++)
        failed = count_cache_value(self, timer, PyList_GET_ITEM(result, index));
    return failed;
}

/* `numbers[0]` is the index of the argument. */
static int count_received(Hook *self, RequestTimer *timer, PyObject *const *args,
                          Py_ssize_t count, PyObject *Py_UNUSED(result))
{
    if (!has_cache_layer(timer) || self->numbers[0] >= count)
        return 0;
    PyObject *value = args[self->numbers[0]];
    long long bytes =
        PyLong_Check(value) ? PyLong_AsLongLong(value) : PyObject_Length(value);
    if (bytes == -1 && PyErr_Occurred())
        return -1;
    return increment_layer_counter(timer, timer->cache_layer, RECEIVED, bytes);
}

static int parse_pair(PyObject *pair, long *one, long *other)
{
    if (PyTuple_Check(pair))
        return PyArg_ParseTuple(pair, "ll", one, other) ? 0 : -1;
    PyErr_SetString(PyExc_TypeError, "expected a tuple of two counter ids");
    return -1;
}

/* Fetch the counter ids of a memoized function and the layer of its backend, once. */
COLD static int fetch_counters(Hook *self)
{
    PyObject *source = Py_NewRef(self->source); /* another thread may clear it */
    PyObject *layer, *given = PyObject_CallNoArgs(source);
    int failed = given == NULL;
    if (!failed && !PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "expected three counter ids and a layer");
        failed = 1;
    }
    if (!failed)
        failed = !PyArg_ParseTuple(given, "lllO", &self->numbers[HIT],
                                   &self->numbers[MISS], &self->numbers[LOCAL_HIT],
                                   &layer);
    if (!failed) {
        Py_XSETREF(self->layer, Py_NewRef(layer));
        Py_XSETREF(self->source, Py_NewRef(Py_None));
    }
    Py_XDECREF(given);
    Py_DECREF(source);
    return failed ? -1 : 0;
}

/* A hit that no backend was asked for is one of the request-local cache. */
static int count_memoized_result(Hook *self, RequestTimer *timer,
                                 PyObject *const *Py_UNUSED(args),
                                 Py_ssize_t Py_UNUSED(count),
                                 PyObject *Py_UNUSED(result))
{
    int missed = or_none(timer->missed_region) == self->expected;
    PyObject *asked = timer->last_layer;
    timer->last_layer = NULL;
    Py_CLEAR(timer->missed_region);
    int failed = self->source != Py_None && fetch_counters(self) < 0;
    if (!failed)
        failed = increment(timer, self->numbers[missed ? MISS : HIT], 1) < 0;
    if (!failed && !missed && asked != self->layer)
        failed = increment(timer, self->numbers[LOCAL_HIT], 1) < 0;
    Py_XDECREF(asked);
    return failed ? -1 : 0;
}

static int store_missed_region(Hook *Py_UNUSED(self), RequestTimer *timer,
                               PyObject *const *args, Py_ssize_t count,
                               PyObject *Py_UNUSED(result))
{
    if (count)
        Py_XSETREF(timer->missed_region, Py_NewRef(args[0]));
    return 0;
}

static int append_annotation(RequestTimer *timer, PyObject *name, PyObject *value)
{
    PyObject *pair = value == NULL ? NULL : PyTuple_Pack(2, name, value);
    if (pair != NULL)
        append_event(timer, 0, ANNOTATION, pair);
    Py_XDECREF(pair);
    Py_XDECREF(value);
    return pair == NULL ? -1 : 0;
}

/* `numbers[0]` is the index of a count, `source` the names of the two annotations. */
static int record_statement_start(Hook *self, RequestTimer *timer,
                                  PyObject *const *args, Py_ssize_t count,
                                  PyObject *Py_UNUSED(result))
{
    count_if_present(timer, self->numbers[0]);
    if (!timer->records_events || count < 3)
        return 0;
    PyObject *dialect = PyObject_GetAttr(args[0], name_name);
    if (append_annotation(timer, PyTuple_GET_ITEM(self->source, 0), dialect) < 0)
        return -1;
    return append_annotation(timer, PyTuple_GET_ITEM(self->source, 1),
                             Py_NewRef(args[2]));
}

/* Return the counter ids of a statement, from the dictionary `expected` or from
 * `source`. */
static PyObject *statement_counters(Hook *self, PyObject *statement)
{
    PyObject *found = PyDict_GetItemWithError(self->expected, statement);
    if (found != NULL || PyErr_Occurred())
        return Py_XNewRef(found);
    return PyObject_CallOneArg(self->source, statement);
}

static int count_rows(RequestTimer *timer, long number, PyObject *cursor)
{
    PyObject *given = PyObject_GetAttr(cursor, rowcount_name);
    long long rows = given == NULL ? -1 : PyLong_AsLongLong(given);
    Py_XDECREF(given);
    if (rows > 0)
        return increment(timer, number, rows);
    return PyErr_Occurred() ? -1 : 0;
}

static int count_executed(Hook *self, RequestTimer *timer, PyObject *const *args,
                          Py_ssize_t count, PyObject *Py_UNUSED(result))
{
    long statements_id, rows_id;
    if (count < 3)
        return 0;
    PyObject *numbers = statement_counters(self, args[2]);
    int failed = numbers == NULL ? -1 : parse_pair(numbers, &statements_id, &rows_id);
    Py_XDECREF(numbers);
    if (failed || increment(timer, statements_id, 1) < 0)
        return -1;
    return count_rows(timer, rows_id, args[1]);
}

static PyObject *new_hook(HookFunction run, PyObject *expected, PyObject *source,
                          long number)
{
    Hook *self = (Hook *)HookType.tp_alloc(&HookType, 0);
    if (self == NULL)
        return NULL;
    self->run = run;
    self->expected = Py_NewRef(expected);
    self->source = Py_NewRef(source);
    self->numbers[0] = number;
    return (PyObject *)self;
}

/* Call the hook from Python: hook(timer, args, result). */
static PyObject *Hook_call(Hook *self, PyObject *given, PyObject *kwargs)
{
    PyObject *args, *result;
    RequestTimer *timer;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "hook(timer, args, result)");
        return NULL;
    }
    if (!PyArg_ParseTuple(given, "O!O!O", &RequestTimerType, &timer, &PyTuple_Type,
                          &args, &result) ||
        self->run(self, timer, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args),
                  result) < 0)
        return NULL;
    Py_RETURN_NONE;
}

#define EACH_OBJECT(of) of(expected) of(source) of(layer)
GC_METHODS(Hook, EACH_OBJECT, (void)0)

PyTypeObject HookType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._native.Hook",
    .tp_basicsize = sizeof(Hook),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = (destructor)Hook_dealloc,
    .tp_traverse = (traverseproc)Hook_traverse,
    .tp_call = (ternaryfunc)Hook_call,
};

static PyObject *count_cache_get(PyObject *Py_UNUSED(module), PyObject *no_value)
{
    return new_hook(count_cache_results, no_value, Py_None, 0);
}

static PyObject *count_bytes_received(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_ssize_t index = PyNumber_AsSsize_t(given, NULL);
    if (index < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "argument index out of range");
        return NULL;
    }
    return new_hook(count_received, Py_None, Py_None, index);
}

static PyObject *count_memoized_call(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *region, *numbers;
    if (!PyArg_ParseTuple(args, "OO", &region, &numbers))
        return NULL;
    return new_hook(count_memoized_result, region, numbers, 0);
}

static PyObject *mark_miss(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return new_hook(store_missed_region, Py_None, Py_None, 0);
}

static PyObject *record_statement(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t count_index;
    PyObject *system, *text;
    if (!PyArg_ParseTuple(args, "O&OO", to_index, &count_index, &system, &text))
        return NULL;
    PyObject *names = PyTuple_Pack(2, system, text);
    PyObject *hook =
        names == NULL ? NULL
                      : new_hook(record_statement_start, Py_None, names, count_index);
    Py_XDECREF(names);
    return hook;
}

static PyObject *count_statement(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *cached, *numbers;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &cached, &numbers))
        return NULL;
    return new_hook(count_executed, cached, numbers, 0);
}

static PyMethodDef functions[] = {
    {"mark_miss", mark_miss, METH_NOARGS,
     SIGNATURE("mark_miss()", "hooks")},
    {"count_statement", count_statement, METH_VARARGS,
     SIGNATURE("count_statement(cached, counter_ids, /)", "hooks")},
    {"record_statement", record_statement, METH_VARARGS,
     SIGNATURE("record_statement(count_index, system, text, /)", "hooks")},
    {"count_cache_get", count_cache_get, METH_O,
     SIGNATURE("count_cache_get(no_value, /)", "hooks")},
    {"count_bytes_received", count_bytes_received, METH_O,
     SIGNATURE("count_bytes_received(index, /)", "hooks")},
    {"count_memoized_call", count_memoized_call, METH_VARARGS,
     SIGNATURE("count_memoized_call(region, counter_ids, /)", "hooks")},
    {NULL},
};

int add_hooks(PyObject *module)
{
    if (intern(&layer_name, "_keylag_layer") < 0 || intern(&name_name, "name") < 0 ||
        intern(&rowcount_name, "rowcount") < 0 || PyType_Ready(&HookType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
