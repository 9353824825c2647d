/* The Python type Aggregator; documented in keylag_otel.pure.aggregator.
 *
 * No function releases the GIL while its state is inconsistent, so it needs no lock.
 */
#include "module.h"
#include "aggregate.h"

#include <structmember.h>

/* The sum of the limits of all instruments; larger ids go to the overflow table. */
#define COUNTER_ARRAY_SIZE 4096

typedef struct {
    PyObject_HEAD PyObject *empty_aggregate; /* copied for each new key */
    PyObject *aggregates, *on_request;
    long long counters[COUNTER_ARRAY_SIZE];
    CallTimes calls[COUNT_LIMIT];
    CounterTable overflow;
} Aggregator;

static int clear_aggregates(Aggregator *self)
{
    PyObject *aggregates = PyDict_New();
    if (aggregates == NULL)
        return -1;
    memset(self->counters, 0, sizeof(self->counters));
    memset(self->calls, 0, sizeof(self->calls));
    clear_table(&self->overflow);
    Py_XSETREF(self->aggregates, aggregates);
    return 0;
}

static PyObject *Aggregator_clear_all(Aggregator *self, PyObject *Py_UNUSED(none))
{
    if (clear_aggregates(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int configure(Aggregator *self, PyObject *bounds, PyObject *counts)
{
    PyObject *empty_aggregate =
        PyObject_CallFunctionObjArgs((PyObject *)&AggregateType, bounds, counts, NULL);
    if (empty_aggregate == NULL)
        return -1;
    Py_XSETREF(self->empty_aggregate, empty_aggregate);
    return clear_aggregates(self);
}

/* Configure no counts and no bounds, for a subclass that skips __init__. */
static PyObject *Aggregator_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                                PyObject *Py_UNUSED(kwargs))
{
    PyObject *bounds = PyTuple_New(0), *counts = PyLong_FromLong(0);
    PyObject *self = NULL;
    if (bounds != NULL && counts != NULL)
        self = type->tp_alloc(type, 0);
    if (self != NULL && configure((Aggregator *)self, bounds, counts) < 0)
        Py_CLEAR(self);
    Py_XDECREF(bounds);
    Py_XDECREF(counts);
    return self;
}

static int Aggregator_init(Aggregator *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"bounds", "counts", NULL};
    PyObject *bounds, *counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &bounds, &counts) ||
        configure(self, bounds, counts) < 0)
        return -1;
    Py_CLEAR(self->on_request);
    return 0;
}

/* Return the aggregate of a key, created if new: a new reference, or NULL with an
 * exception on failure.  Comparing keys may run Python code, which may clear
 * `aggregates`. */
static Aggregate *find_aggregate(Aggregator *self, PyObject *key)
{
    PyObject *aggregates = Py_NewRef(self->aggregates);
    PyObject *aggregate = PyDict_GetItemWithError(aggregates, key);
    if (aggregate == NULL && !PyErr_Occurred()) {
        PyObject *made = copy_aggregate((Aggregate *)self->empty_aggregate);
        if (made != NULL)
            aggregate = PyDict_SetDefault(aggregates, key, made);
        Py_XINCREF(aggregate);
        Py_XDECREF(made);
    } else {
        Py_XINCREF(aggregate);
    }
    Py_DECREF(aggregates);
    return (Aggregate *)aggregate;
}

/* Return the attributes that requests are aggregated by; unset ones are None. */
static PyObject *request_key(const RequestTimer *timer, PyObject *status)
{
    return PyTuple_Pack(4, or_none(timer->method), or_none(timer->route), status,
                        or_none(timer->auth_method));
}

static int add_aggregate_counter(void *to, long number, long long sum)
{
    Aggregator *self = to;
    if (number < 0 || number >= COUNTER_ARRAY_SIZE)
        return add_counter(&self->overflow, number, sum);
    if (__builtin_add_overflow(self->counters[number], sum, &sum))
        return sum_overflow();
    self->counters[number] = sum;
    return 0;
}

static PyObject *call_on_request(Aggregator *self, RequestTimer *timer, PyObject *key)
{
    PyObject *hook_args[] = {(PyObject *)timer, key};
    if (!is_set(self->on_request))
        Py_RETURN_NONE;
    PyObject *result = call_owned(self->on_request, hook_args, 2);
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    Py_RETURN_NONE;
}

static PyObject *Aggregator_add(Aggregator *self, PyObject *args)
{
    RequestTimer *timer;
    PyObject *status;
    if (!PyArg_ParseTuple(args, "O!O", &RequestTimerType, &timer, &status))
        return NULL;
    PyObject *key = request_key(timer, status);
    Aggregate *aggregate = key == NULL ? NULL : find_aggregate(self, key);
    PyObject *done = NULL;
    if (aggregate != NULL) {
        add_request(aggregate, timer);
        add_calls(self->calls, timer->calls);
        if (add_all_counters(&timer->counters, add_aggregate_counter, self) == 0)
            done = call_on_request(self, timer, key);
    }
    Py_XDECREF(aggregate);
    Py_XDECREF(key);
    return done;
}

static PyObject *Aggregator_increment(Aggregator *self, PyObject *number)
{
    long counter_id = to_long(number);
    if (PyErr_Occurred() || add_aggregate_counter(self, counter_id, 1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Iterate over a copy: hashing a key may run Python code. */
static PyObject *Aggregator_by_key(Aggregator *self, PyObject *Py_UNUSED(none))
{
    PyObject *key, *aggregate, *aggregates = PyDict_Copy(self->aggregates);
    PyObject *found = aggregates == NULL ? NULL : PyDict_New();
    Py_ssize_t position = 0;
    while (found != NULL && PyDict_Next(aggregates, &position, &key, &aggregate)) {
        PyObject *copied = copy_aggregate((Aggregate *)aggregate);
        if (copied == NULL || PyDict_SetItem(found, key, copied) < 0)
            Py_CLEAR(found);
        Py_XDECREF(copied);
    }
    Py_XDECREF(aggregates);
    return found;
}

static int add_nonzero(void *sums, long number, long long sum)
{
    return sum == 0 ? 0 : add_to_dict(sums, number, sum);
}

static PyObject *Aggregator_counters(Aggregator *self, void *Py_UNUSED(closure))
{
    PyObject *found = PyDict_New();
    for (long number = 0; found != NULL && number < COUNTER_ARRAY_SIZE; number++)
        if (add_nonzero(found, number, self->counters[number]) < 0)
            Py_CLEAR(found);
    if (found != NULL && add_all_counters(&self->overflow, add_nonzero, found) < 0)
        Py_CLEAR(found);
    return found;
}

static PyObject *Aggregator_calls(Aggregator *self, void *Py_UNUSED(closure))
{
    return dict_of_calls(self->calls);
}

#define EACH_OBJECT(of) of(empty_aggregate) of(aggregates) of(on_request)
GC_METHODS(Aggregator, EACH_OBJECT, clear_table(&self->overflow))

/* The other members live as long as the aggregator. */
static int Aggregator_clear(Aggregator *self)
{
    Py_CLEAR(self->on_request);
    return 0;
}

static PyMemberDef Aggregator_members[] = {
    {"on_request", T_OBJECT, offsetof(Aggregator, on_request), 0, NULL},
    {NULL},
};

static PyMethodDef Aggregator_methods[] = {
    {"add", (PyCFunction)Aggregator_add, METH_VARARGS,
     SIGNATURE("add($self, timer, status, /)", "aggregator")},
    {"by_key", (PyCFunction)Aggregator_by_key, METH_NOARGS,
     SIGNATURE("by_key($self, /)", "aggregator")},
    {"clear", (PyCFunction)Aggregator_clear_all, METH_NOARGS,
     SIGNATURE("clear($self, /)", "aggregator")},
    {"increment", (PyCFunction)Aggregator_increment, METH_O,
     SIGNATURE("increment($self, counter_id, /)", "aggregator")},
    {NULL},
};

static PyGetSetDef Aggregator_getset[] = {
    {"calls", (getter)Aggregator_calls, NULL, NULL, NULL},
    {"counters", (getter)Aggregator_counters, NULL, NULL, NULL},
    {NULL},
};

static PyTypeObject AggregatorType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._native.Aggregator",
    .tp_doc = SIGNATURE("Aggregator(bounds, counts)", "aggregator"),
    .tp_basicsize = sizeof(Aggregator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = Aggregator_new,
    .tp_init = (initproc)Aggregator_init,
    .tp_dealloc = (destructor)Aggregator_dealloc,
    .tp_traverse = (traverseproc)Aggregator_traverse,
    .tp_clear = (inquiry)Aggregator_clear,
    .tp_members = Aggregator_members,
    .tp_methods = Aggregator_methods,
    .tp_getset = Aggregator_getset,
};

int add_aggregator(PyObject *module)
{
    return PyModule_AddType(module, &AggregatorType);
}
