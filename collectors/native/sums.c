/* What all requests add up to: keylag_otel.pure.sums says how.
 *
 * Nothing here gives up Python's lock halfway, so none of its own is needed.
 */
#include "module.h"
#include "totals.h"

#include <structmember.h>

#define TALLIES 4096 /* the limits of all instruments together; the rest is kept beyond */

typedef struct {
    PyObject_HEAD
    PyObject *first, *rows, *recorded; /* all rows begin as the first */
    long long tallies[TALLIES];
    Slots beyond;
} Sums;

static int start_from_nothing(Sums *self)
{
    PyObject *rows = PyDict_New();
    if (rows == NULL)
        return -1;
    memset(self->tallies, 0, sizeof(self->tallies));
    empty(&self->beyond);
    Py_XSETREF(self->rows, rows);
    return 0;
}

static PyObject *Sums_clear_all(Sums *self, PyObject *Py_UNUSED(none))
{
    if (start_from_nothing(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int start_with(Sums *self, PyObject *bounds, PyObject *counts)
{
    PyObject *first =
        PyObject_CallFunctionObjArgs((PyObject *)&TotalsType, bounds, counts, NULL);
    if (first == NULL)
        return -1;
    Py_XSETREF(self->first, first);
    return start_from_nothing(self);
}

/* A subclass may leave __init__ out: then nothing is counted, and there are no bounds. */
static PyObject *Sums_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                          PyObject *Py_UNUSED(kwargs))
{
    PyObject *bounds = PyTuple_New(0), *counts = PyLong_FromLong(0);
    PyObject *self = NULL;
    if (bounds != NULL && counts != NULL)
        self = type->tp_alloc(type, 0);
    if (self != NULL && start_with((Sums *)self, bounds, counts) < 0)
        Py_CLEAR(self);
    Py_XDECREF(bounds);
    Py_XDECREF(counts);
    return self;
}

static int Sums_init(Sums *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"bounds", "counts", NULL};
    PyObject *bounds, *counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &bounds, &counts) ||
        start_with(self, bounds, counts) < 0)
        return -1;
    Py_CLEAR(self->recorded);
    return 0;
}

/* Return the totals of a key, which are kept: a new reference, or NULL with an
 * exception.  To compare keys may run Python, which may clear the rows. */
static Totals *totals_of(Sums *self, PyObject *key)
{
    PyObject *rows = Py_NewRef(self->rows);
    PyObject *totals = PyDict_GetItemWithError(rows, key);
    if (totals == NULL && !PyErr_Occurred()) {
        PyObject *made = copy_of((Totals *)self->first);
        if (made != NULL)
            totals = PyDict_SetDefault(rows, key, made);
        Py_XINCREF(totals);
        Py_XDECREF(made);
    } else {
        Py_XINCREF(totals);
    }
    Py_DECREF(rows);
    return (Totals *)totals;
}

/* Return what requests are told apart by; what was never set is None. */
static PyObject *key_of(const Clock *clock, PyObject *status)
{
    return PyTuple_Pack(4, or_none(clock->method), or_none(clock->route), status,
                        or_none(clock->auth_method));
}

static int add_tally(void *to, long number, long long sum)
{
    Sums *self = to;
    if (number < 0 || number >= TALLIES)
        return add_to(&self->beyond, number, sum);
    if (__builtin_add_overflow(self->tallies[number], sum, &sum))
        return too_large();
    self->tallies[number] = sum;
    return 0;
}

static PyObject *tell_recorded(Sums *self, Clock *clock, PyObject *key)
{
    PyObject *told[] = {(PyObject *)clock, key};
    if (!is_set(self->recorded))
        Py_RETURN_NONE;
    PyObject *answer = call_kept(self->recorded, told, 2);
    if (answer == NULL)
        return NULL;
    Py_DECREF(answer);
    Py_RETURN_NONE;
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
    if (totals != NULL) {
        add_clock_to(totals, clock);
        if (add_each(&clock->tallies, add_tally, self) == 0)
            done = tell_recorded(self, clock, key);
    }
    Py_XDECREF(totals);
    Py_XDECREF(key);
    return done;
}

static PyObject *Sums_tally(Sums *self, PyObject *number)
{
    long known = to_long(number);
    if (PyErr_Occurred() || add_tally(self, known, 1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* What is looped over is nobody else's: to hash a key may run Python. */
static PyObject *Sums_by_key(Sums *self, PyObject *Py_UNUSED(none))
{
    PyObject *key, *totals, *rows = PyDict_Copy(self->rows);
    PyObject *found = rows == NULL ? NULL : PyDict_New();
    Py_ssize_t position = 0;
    while (found != NULL && PyDict_Next(rows, &position, &key, &totals)) {
        PyObject *copied = copy_of((Totals *)totals);
        if (copied == NULL || PyDict_SetItem(found, key, copied) < 0)
            Py_CLEAR(found);
        Py_XDECREF(copied);
    }
    Py_XDECREF(rows);
    return found;
}

static int add_any(void *sums, long number, long long sum)
{
    return sum == 0 ? 0 : add_in(sums, number, sum);
}

static PyObject *Sums_tallies(Sums *self, void *Py_UNUSED(closure))
{
    PyObject *found = PyDict_New();
    for (long number = 0; found != NULL && number < TALLIES; number++)
        if (add_any(found, number, self->tallies[number]) < 0)
            Py_CLEAR(found);
    if (found != NULL && add_each(&self->beyond, add_any, found) < 0)
        Py_CLEAR(found);
    return found;
}

#define EACH_OBJECT(of) of(first) of(rows) of(recorded)
COLLECTED(Sums, EACH_OBJECT, empty(&self->beyond))

/* The rest is there for as long as the sums are. */
static int Sums_clear(Sums *self)
{
    Py_CLEAR(self->recorded);
    return 0;
}

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
    .tp_new = Sums_new,
    .tp_init = (initproc)Sums_init,
    .tp_dealloc = (destructor)Sums_dealloc,
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
