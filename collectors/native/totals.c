/* Sums as Python sees them: keylag_otel.pure.totals says what they are. */
#include "module.h"
#include "totals.h"

#include <structmember.h>

static int read_numbers(PyObject *given, Py_ssize_t count, long long *numbers)
{
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *number = PySequence_GetItem(given, index);
        numbers[index] = number == NULL ? 0 : PyLong_AsLongLong(number);
        Py_XDECREF(number);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static int Totals_init(Totals *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"bounds", "counts", NULL};
    PyObject *bounds;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "On", names, &bounds,
                                     &self->counted))
        return -1;
    self->bounded = PySequence_Size(bounds);
    if (self->bounded >= 0 && self->bounded <= MOST && self->counted <= MOST)
        return read_numbers(bounds, self->bounded, self->bounds);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "at most %d bounds and counts", MOST);
    return -1;
}

void add_clock_to(Totals *self, const Clock *clock)
{
    for (Py_ssize_t index = 0; index < self->counted; index++)
        self->counts[index] += clock->counts[index];
    for (int cell = 0; cell < CELLS; cell++)
        if (clock->cells[cell] != 0)
            self->cells[cell] += clock->cells[cell];
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
    if (!PyObject_TypeCheck(given, &ClockType)) {
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
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Totals_init,
    .tp_members = Totals_members,
    .tp_methods = Totals_methods,
    .tp_getset = Totals_getset,
};

int add_totals(PyObject *module)
{
    return PyModule_AddType(module, &TotalsType);
}
