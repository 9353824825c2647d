/* The Python type Aggregate; documented in keylag_otel.pure.aggregate. */
#include "module.h"
#include "aggregate.h"

#include <structmember.h>

static int too_many_bounds(void)
{
    PyErr_Format(PyExc_ValueError, "more than %d bounds", COUNT_LIMIT);
    return -1;
}

static int not_ascending(void)
{
    PyErr_SetString(PyExc_ValueError, "bounds must ascend");
    return -1;
}

int read_bounds(Bounds *bounds, PyObject *given)
{
    PyObject *tuple = PySequence_Tuple(given);
    if (tuple == NULL)
        return -1;
    Py_ssize_t index = 0, count = PyTuple_GET_SIZE(tuple);
    long long *limits = bounds->limits;
    int failed = count > COUNT_LIMIT ? too_many_bounds() : 0;
    for (; index < count && failed == 0; index++) {
        limits[index] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, index));
        if (PyErr_Occurred())
            failed = -1;
        else if (index && limits[index] < limits[index - 1])
            failed = not_ascending();
    }
    bounds->count = index;
    Py_DECREF(tuple);
    return failed;
}

static PyObject *Aggregate_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                               PyObject *kwargs)
{
    static char *names[] = {"bounds", "counts", NULL};
    PyObject *bounds;
    Py_ssize_t counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&", names, &bounds, to_size,
                                     &counts))
        return NULL;
    Aggregate *self = (Aggregate *)PyType_GenericAlloc(&AggregateType, 0);
    if (self != NULL)
        self->count_size = counts;
    if (self != NULL && read_bounds(&self->bounds, bounds) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

void add_request(Aggregate *self, const RequestTimer *timer)
{
    for (Py_ssize_t index = 0; index < self->count_size; index++)
        self->counts[index] = wrapping_add(self->counts[index], timer->counts[index]);
    for (int cell = 0; cell < CELLS; cell++)
        if (timer->cells[cell] != 0)
            self->cells[cell] = wrapping_add(self->cells[cell], timer->cells[cell]);
    long long wall = wall_time_of(timer->cells);
    self->buckets[bucket_of(&self->bounds, wall)]++;
    if (self->request_count++ == 0 || wall < self->min_ns)
        self->min_ns = wall;
    if (wall > self->max_ns)
        self->max_ns = wall;
}

static PyObject *Aggregate_add(Aggregate *self, PyObject *given)
{
    if (!Py_IS_TYPE(given, &RequestTimerType)) {
        PyErr_SetString(PyExc_TypeError, "add(timer)");
        return NULL;
    }
    add_request(self, (RequestTimer *)given);
    Py_RETURN_NONE;
}

PyObject *copy_aggregate(const Aggregate *self)
{
    Aggregate *copied = (Aggregate *)PyType_GenericAlloc(&AggregateType, 0);
    if (copied != NULL)
        memcpy((char *)copied + sizeof(PyObject), (char *)self + sizeof(PyObject),
               sizeof(Aggregate) - sizeof(PyObject));
    return (PyObject *)copied;
}

static PyObject *Aggregate_copy(Aggregate *self, PyObject *Py_UNUSED(none))
{
    return copy_aggregate(self);
}

static PyObject *Aggregate_self_times(Aggregate *self, PyObject *Py_UNUSED(none))
{
    return self_times_of(self->cells);
}

static PyObject *Aggregate_counts(Aggregate *self, void *Py_UNUSED(closure))
{
    return list_of_numbers(self->counts, self->count_size);
}

static PyObject *Aggregate_buckets(Aggregate *self, void *Py_UNUSED(closure))
{
    return list_of_numbers(self->buckets, self->bounds.count + 1);
}

static PyObject *Aggregate_wall_ns(Aggregate *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(wall_time_of(self->cells));
}

static PyMemberDef Aggregate_members[] = {
    {"min_ns", T_LONGLONG, offsetof(Aggregate, min_ns), READONLY, NULL},
    {"max_ns", T_LONGLONG, offsetof(Aggregate, max_ns), READONLY, NULL},
    {NULL},
};

static PyMethodDef Aggregate_methods[] = {
    {"add", (PyCFunction)Aggregate_add, METH_O,
     SIGNATURE("add($self, timer, /)", "aggregate")},
    {"copy", (PyCFunction)Aggregate_copy, METH_NOARGS,
     SIGNATURE("copy($self, /)", "aggregate")},
    {"self_times", (PyCFunction)Aggregate_self_times, METH_NOARGS,
     SIGNATURE("self_times($self, /)", "aggregate")},
    {NULL},
};

static PyGetSetDef Aggregate_getset[] = {
    {"counts", (getter)Aggregate_counts, NULL, NULL, NULL},
    {"buckets", (getter)Aggregate_buckets, NULL, NULL, NULL},
    {"wall_ns", (getter)Aggregate_wall_ns, NULL, NULL, NULL},
    {NULL},
};

PyTypeObject AggregateType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._native.Aggregate",
    .tp_doc = SIGNATURE("Aggregate(bounds, counts)", "aggregate"),
    .tp_basicsize = sizeof(Aggregate),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = Aggregate_new,
    .tp_members = Aggregate_members,
    .tp_methods = Aggregate_methods,
    .tp_getset = Aggregate_getset,
};

int add_aggregate(PyObject *module)
{
    return PyModule_AddType(module, &AggregateType);
}
