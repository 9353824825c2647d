/* Sums as Python sees them: keylag_otel.pure.totals says what they are. */
#include "module.h"
#include "totals.h"

#include <structmember.h>

static int too_many(void)
{
    PyErr_Format(PyExc_ValueError, "there are more than %d bounds", MOST);
    return -1;
}

static int not_ascending(void)
{
    PyErr_SetString(PyExc_ValueError, "the bounds do not ascend");
    return -1;
}

/* Read the bounds, whatever gives them; -1 with an exception. */
static int read_bounds(Totals *self, PyObject *given)
{
    PyObject *bounds = PySequence_Tuple(given);
    if (bounds == NULL)
        return -1;
    Py_ssize_t index = 0, count = PyTuple_GET_SIZE(bounds);
    int failed = count > MOST ? too_many() : 0;
    for (; index < count && failed == 0; index++) {
        self->bounds[index] = PyLong_AsLongLong(PyTuple_GET_ITEM(bounds, index));
        if (PyErr_Occurred())
            failed = -1;
        else if (index && self->bounds[index] < self->bounds[index - 1])
            failed = not_ascending();
    }
    self->bounded = index;
    Py_DECREF(bounds);
    return failed;
}

static PyObject *Totals_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                            PyObject *kwargs)
{
    static char *names[] = {"bounds", "counts", NULL};
    PyObject *bounds;
    Py_ssize_t counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&", names, &bounds, to_size,
                                     &counts))
        return NULL;
    Totals *self = (Totals *)PyType_GenericAlloc(&TotalsType, 0);
    if (self != NULL)
        self->counted = counts;
    if (self != NULL && read_bounds(self, bounds) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

void add_clock_to(Totals *self, const Clock *clock)
{
    for (Py_ssize_t index = 0; index < self->counted; index++)
        self->counts[index] = plus(self->counts[index], clock->counts[index]);
    for (int cell = 0; cell < CELLS; cell++)
        if (clock->cells[cell] != 0)
            self->cells[cell] = plus(self->cells[cell], clock->cells[cell]);
    long long wall = wall_of(clock->cells);
    Py_ssize_t bucket = 0;
    while (bucket < self->bounded && wall > self->bounds[bucket])
        bucket++;
    self->buckets[bucket]++;
    if (self->times++ == 0 || wall < self->shortest)
        self->shortest = wall;
    if (wall > self->longest)
        self->longest = wall;
}

static PyObject *Totals_add(Totals *self, PyObject *given)
{
    if (!Py_IS_TYPE(given, &ClockType)) {
        PyErr_SetString(PyExc_TypeError, "add(clock)");
        return NULL;
    }
    add_clock_to(self, (Clock *)given);
    Py_RETURN_NONE;
}

PyObject *copy_of(const Totals *self)
{
    Totals *copied = (Totals *)PyType_GenericAlloc(&TotalsType, 0);
    if (copied != NULL)
        memcpy((char *)copied + sizeof(PyObject), (char *)self + sizeof(PyObject),
               sizeof(Totals) - sizeof(PyObject));
    return (PyObject *)copied;
}

static PyObject *Totals_copy(Totals *self, PyObject *Py_UNUSED(none))
{
    return copy_of(self);
}

static PyObject *Totals_spent(Totals *self, PyObject *Py_UNUSED(none))
{
    return spent_of(self->cells);
}

static PyObject *Totals_counts(Totals *self, void *Py_UNUSED(closure))
{
    return list_of(self->counts, self->counted);
}

static PyObject *Totals_buckets(Totals *self, void *Py_UNUSED(closure))
{
    return list_of(self->buckets, self->bounded + 1);
}

static PyObject *Totals_wall_ns(Totals *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(wall_of(self->cells));
}

static PyMemberDef Totals_members[] = {
    {"shortest", T_LONGLONG, offsetof(Totals, shortest), READONLY, NULL},
    {"longest", T_LONGLONG, offsetof(Totals, longest), READONLY, NULL},
    {NULL},
};

static PyMethodDef Totals_methods[] = {
    {"add", (PyCFunction)Totals_add, METH_O, NULL},
    {"copy", (PyCFunction)Totals_copy, METH_NOARGS, NULL},
    {"spent", (PyCFunction)Totals_spent, METH_NOARGS, NULL},
    {NULL},
};

static PyGetSetDef Totals_getset[] = {
    {"counts", (getter)Totals_counts, NULL, NULL, NULL},
    {"buckets", (getter)Totals_buckets, NULL, NULL, NULL},
    {"wall_ns", (getter)Totals_wall_ns, NULL, NULL, NULL},
    {NULL},
};

PyTypeObject TotalsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Totals",
    .tp_doc = "Requests added up; see keylag_otel.pure.totals.",
    .tp_basicsize = sizeof(Totals),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = Totals_new,
    .tp_members = Totals_members,
    .tp_methods = Totals_methods,
    .tp_getset = Totals_getset,
};

int add_totals(PyObject *module)
{
    return PyModule_AddType(module, &TotalsType);
}
