/* What all requests add up to: keylag_otel.pure.sums says how.
 *
 * Nothing here gives up Python's lock halfway, so none of its own is needed.
 */
#include "module.h"
#include "totals.h"

#include <structmember.h>

#define TALLIES 4096 /* keylag_otel.tally.LIMIT; what is above is kept beyond */

typedef struct {
    PyObject_HEAD
    PyObject *bounds, *counts, *rows, *beyond, *recorded;
    long long tallies[TALLIES];
} Sums;

static PyObject *Sums_clear_all(Sums *self, PyObject *Py_UNUSED(none))
{
    PyObject *rows = PyDict_New(), *beyond = PyDict_New();
    if (rows == NULL || beyond == NULL) {
        Py_XDECREF(rows);
        Py_XDECREF(beyond);
        return NULL;
    }
    Py_XSETREF(self->rows, rows);
    Py_XSETREF(self->beyond, beyond);
    memset(self->tallies, 0, sizeof(self->tallies));
    Py_RETURN_NONE;
}

static int Sums_init(Sums *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"bounds", "counts", NULL};
    PyObject *bounds, *counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &bounds, &counts))
        return -1;
    Py_XSETREF(self->bounds, Py_NewRef(bounds));
    Py_XSETREF(self->counts, Py_NewRef(counts));
    Py_XSETREF(self->recorded, Py_NewRef(Py_None));
    PyObject *cleared = Sums_clear_all(self, NULL);
    Py_XDECREF(cleared);
    return cleared == NULL ? -1 : 0;
}

/* Return the totals of a key, which are kept: a borrowed reference. */
static Totals *totals_of(Sums *self, PyObject *key)
{
    PyObject *totals = PyDict_GetItemWithError(self->rows, key);
    if (totals != NULL || PyErr_Occurred())
        return (Totals *)totals;
    totals = PyObject_CallFunctionObjArgs((PyObject *)&TotalsType, self->bounds,
                                          self->counts, NULL);
    if (totals != NULL && PyDict_SetItem(self->rows, key, totals) < 0)
        Py_CLEAR(totals);
    Py_XDECREF(totals);
    return (Totals *)totals;
}

/* Return what requests are told apart by; what was never set is None. */
static PyObject *key_of(const Clock *clock, PyObject *status)
{
    return PyTuple_Pack(4, clock->method, or_none(clock->route), status,
                        or_none(clock->auth_method));
}

static int add_tally(void *to, long number, long long sum)
{
    Sums *self = to;
    if (number < 0 || number >= TALLIES)
        return add_in(self->beyond, number, sum);
    self->tallies[number] += sum;
    return 0;
}

static PyObject *Sums_add(Sums *self, PyObject *args)
{
    Clock *clock;
    PyObject *status;
    if (!PyArg_ParseTuple(args, "O!O", &ClockType, &clock, &status))
        return NULL;
    PyObject *key = key_of(clock, status);
    Totals *totals = key == NULL ? NULL : totals_of(self, key);
    PyObject *done = NULL;
    if (totals != NULL && add_tallies_to(clock, add_tally, self) == 0) {
        add_clock_to(totals, clock);
        if (self->recorded == Py_None)
            done = Py_NewRef(Py_None);
        else
            done = PyObject_CallFunctionObjArgs(self->recorded, clock, key, NULL);
    }
    Py_XDECREF(key);
    return done;
}

static PyObject *Sums_tally(Sums *self, PyObject *number)
{
    long known = PyLong_AsLong(number);
    if (PyErr_Occurred() || add_tally(self, known, 1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *Sums_by_key(Sums *self, PyObject *Py_UNUSED(none))
{
    PyObject *key, *totals, *found = PyDict_New();
    Py_ssize_t position = 0;
    while (found != NULL && PyDict_Next(self->rows, &position, &key, &totals)) {
        PyObject *copied = copy_of((Totals *)totals);
        if (copied == NULL || PyDict_SetItem(found, key, copied) < 0)
            Py_CLEAR(found);
        Py_XDECREF(copied);
    }
    return found;
}

static PyObject *Sums_tallies(Sums *self, void *Py_UNUSED(closure))
{
    PyObject *found = PyDict_Copy(self->beyond);
    for (long number = 0; found != NULL && number < TALLIES; number++)
        if (self->tallies[number] != 0 && add_in(found, number, self->tallies[number]) < 0)
            Py_CLEAR(found);
    return found;
}

#define EACH_OBJECT(of) of(bounds) of(counts) of(rows) of(beyond) of(recorded)
COLLECTED(Sums, EACH_OBJECT)

static PyMemberDef Sums_members[] = {
    {"recorded", T_OBJECT, offsetof(Sums, recorded), 0, NULL},
    {NULL},
};

static PyMethodDef Sums_methods[] = {
    {"add", (PyCFunction)Sums_add, METH_VARARGS, NULL},
    {"by_key", (PyCFunction)Sums_by_key, METH_NOARGS, NULL},
    {"clear", (PyCFunction)Sums_clear_all, METH_NOARGS, NULL},
    {"tally", (PyCFunction)Sums_tally, METH_O, NULL},
    {NULL},
};

static PyGetSetDef Sums_getset[] = {
    {"tallies", (getter)Sums_tallies, NULL, NULL, NULL},
    {NULL},
};

static PyTypeObject SumsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Sums",
    .tp_doc = "All requests added up; see keylag_otel.pure.sums.",
    .tp_basicsize = sizeof(Sums),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Sums_init,
    .tp_dealloc = dealloc,
    .tp_traverse = (traverseproc)Sums_traverse,
    .tp_clear = (inquiry)Sums_clear,
    .tp_members = Sums_members,
    .tp_methods = Sums_methods,
    .tp_getset = Sums_getset,
};

int add_sums(PyObject *module)
{
    return PyModule_AddType(module, &SumsType);
}
