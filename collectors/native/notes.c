/* Notes: what they tell, and how Python makes them; keylag_otel.pure says it. */
#include "module.h"
#include "notes.h"

#define KNOWN 64 /* layers whose tallies need not be looked up */

PyObject *layer_name;
static PyObject *hit_name, *miss_name, *received_name;

/* Add to the tally that is an attribute of a layer. */
static PyObject *tally_of(Clock *clock, PyObject *layer, PyObject *name, long long sum)
{
    PyObject *number = PyObject_GetAttr(layer, name);
    PyObject *done = number == NULL ? NULL : tally(clock, number, sum);
    Py_XDECREF(number);
    return done;
}

/* The tallies of what was given its layer, by its address; it is kept alive. */
typedef struct {
    PyObject *owner, *hit, *miss;
} Known;

static Known known[KNOWN];

static Known *known_of(PyObject *owner)
{
    Known *entry = &known[(size_t)owner / 16 % KNOWN];
    if (entry->owner == owner)
        return entry;
    PyObject *layer = PyObject_GetAttr(owner, layer_name);
    PyObject *hit = layer == NULL ? NULL : PyObject_GetAttr(layer, hit_name);
    PyObject *miss = hit == NULL ? NULL : PyObject_GetAttr(layer, miss_name);
    Py_XDECREF(layer);
    if (miss == NULL) {
        Py_XDECREF(hit);
        return NULL;
    }
    Py_XSETREF(entry->hit, hit);
    Py_XSETREF(entry->miss, miss);
    Py_XSETREF(entry->owner, Py_NewRef(owner));
    return entry;
}

static PyObject *note_looked_up(Note *self, Clock *clock, PyObject *const *args,
                                Py_ssize_t count, PyObject *result)
{
    Known *entry = known_of(count ? args[0] : Py_None);
    if (entry == NULL)
        return NULL;
    return tally(clock, result == self->expected ? entry->miss : entry->hit, 1);
}

/* Several keys at once are several look-ups. */
static PyObject *note_got(Note *self, Clock *clock, PyObject *const *args,
                          Py_ssize_t count, PyObject *result)
{
    if (PyList_Check(result)) {
        for (Py_ssize_t index = 0; index < PyList_GET_SIZE(result); index++) {
            PyObject *one = PyList_GET_ITEM(result, index);
            PyObject *done = note_got(self, clock, args, count, one);
            if (done == NULL)
                return NULL;
            Py_DECREF(done);
        }
        Py_RETURN_NONE;
    }
    if (result == Py_None || result == self->expected)
        return tally_of(clock, clock->layer, miss_name, 1);
    PyObject *done = tally_of(clock, clock->layer, hit_name, 1);
    if (done == NULL || !PyBytes_CheckExact(result))
        return done;
    Py_DECREF(done);
    return tally_of(clock, clock->layer, received_name, PyBytes_GET_SIZE(result));
}

static PyObject *note_received(Note *self, Clock *clock, PyObject *const *args,
                               Py_ssize_t count, PyObject *result)
{
    (void)result;
    Py_ssize_t index = PyLong_AsSsize_t(self->expected);
    if (!is_asked(clock) || index >= count)
        Py_RETURN_NONE;
    PyObject *value = args[index];
    long long bytes =
        PyLong_Check(value) ? PyLong_AsLongLong(value) : PyObject_Length(value);
    return PyErr_Occurred() ? NULL
                            : tally_of(clock, clock->layer, received_name, bytes);
}

static PyObject *note_memoized(Note *self, Clock *clock, PyObject *const *args,
                               Py_ssize_t count, PyObject *result)
{
    (void)args, (void)count;
    int missed = clock->missed == self->expected;
    Py_XSETREF(clock->missed, Py_NewRef(Py_None));
    if (result == NULL)
        Py_RETURN_NONE;
    if (!PyTuple_Check(self->numbers)) {
        PyObject *numbers = PyObject_CallNoArgs(self->numbers);
        if (numbers == NULL)
            return NULL;
        if (!PyTuple_Check(numbers) || PyTuple_GET_SIZE(numbers) != 2) {
            Py_DECREF(numbers);
            PyErr_SetString(PyExc_TypeError, "the numbers of a hit and of a miss");
            return NULL;
        }
        Py_SETREF(self->numbers, numbers);
    }
    return tally(clock, PyTuple_GET_ITEM(self->numbers, missed), 1);
}

static PyObject *new_note(Telling tell, PyObject *expected, PyObject *numbers)
{
    Note *self = (Note *)NoteType.tp_alloc(&NoteType, 0);
    if (self == NULL)
        return NULL;
    self->tell = tell;
    self->expected = Py_NewRef(expected);
    self->numbers = Py_NewRef(numbers);
    return (PyObject *)self;
}

#define EACH_OBJECT(of) of(expected) of(numbers)
COLLECTED(Note, EACH_OBJECT)

PyTypeObject NoteType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Note",
    .tp_basicsize = sizeof(Note),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = dealloc,
    .tp_traverse = (traverseproc)Note_traverse,
    .tp_clear = (inquiry)Note_clear,
};

static PyObject *looked_up(PyObject *Py_UNUSED(module), PyObject *no_value)
{
    return new_note(note_looked_up, no_value, Py_None);
}

static PyObject *got(PyObject *Py_UNUSED(module), PyObject *no_value)
{
    return new_note(note_got, no_value, Py_None);
}

static PyObject *received(PyObject *Py_UNUSED(module), PyObject *index)
{
    if (!PyLong_Check(index)) {
        PyErr_SetString(PyExc_TypeError, "received(index)");
        return NULL;
    }
    return new_note(note_received, index, Py_None);
}

static PyObject *memoized(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *region, *numbers;
    if (!PyArg_ParseTuple(args, "OO", &region, &numbers))
        return NULL;
    return new_note(note_memoized, region, numbers);
}

static PyMethodDef functions[] = {
    {"looked_up", looked_up, METH_O, "See keylag_otel.pure."},
    {"got", got, METH_O, "See keylag_otel.pure."},
    {"received", received, METH_O, "See keylag_otel.pure."},
    {"memoized", memoized, METH_VARARGS, "See keylag_otel.pure."},
    {NULL},
};

int add_notes(PyObject *module)
{
    layer_name = PyUnicode_InternFromString("_keylag_layer");
    hit_name = PyUnicode_InternFromString("hit");
    miss_name = PyUnicode_InternFromString("miss");
    received_name = PyUnicode_InternFromString("received");
    if (layer_name == NULL || hit_name == NULL || miss_name == NULL ||
        received_name == NULL || PyType_Ready(&NoteType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
