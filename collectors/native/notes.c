/* Notes: what they tell, and how Python makes them; keylag_otel.pure says it. */
#include "module.h"
#include "notes.h"

#define KNOWN 64 /* layers whose tallies need not be looked up */

PyObject *layer_name;
static PyObject *hit_name, *miss_name, *name_name, *received_name, *rowcount_name;

PyObject *in_counts(Clock *clock, Py_ssize_t index)
{
    PyObject *counted = PyList_GetItem(clock->counts, index);
    long long count = counted == NULL ? -1 : PyLong_AsLongLong(counted);
    PyObject *more = PyErr_Occurred() ? NULL : PyLong_FromLongLong(count + 1);
    if (more == NULL || PyList_SetItem(clock->counts, index, more) < 0)
        return NULL;
    Py_RETURN_NONE;
}

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
    (void)args, (void)count, (void)result;
    int missed = clock->missed == self->expected;
    Py_XSETREF(clock->missed, Py_NewRef(Py_None));
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

static PyObject *note_computed(Note *self, Clock *clock, PyObject *const *args,
                               Py_ssize_t count, PyObject *result)
{
    (void)self, (void)result;
    if (count)
        Py_XSETREF(clock->missed, Py_NewRef(args[0]));
    Py_RETURN_NONE;
}

static int note_down(Clock *clock, PyObject *name, PyObject *value)
{
    PyObject *noted = value == NULL ? NULL : PyTuple_Pack(2, name, value);
    if (noted != NULL)
        append(clock, 0, NOTED, noted);
    Py_XDECREF(noted);
    Py_XDECREF(value);
    return noted == NULL ? -1 : 0;
}

/* `expected` is what is counted, `numbers` the names of the two notes. */
static PyObject *note_stated(Note *self, Clock *clock, PyObject *const *args,
                             Py_ssize_t count, PyObject *result)
{
    (void)result;
    if (clock->writes && count > 2) {
        PyObject *dialect = PyObject_GetAttr(args[0], name_name);
        if (note_down(clock, PyTuple_GET_ITEM(self->numbers, 0), dialect) < 0 ||
            note_down(clock, PyTuple_GET_ITEM(self->numbers, 1), Py_NewRef(args[2])) < 0)
            return NULL;
    }
    return in_counts(clock, PyLong_AsSsize_t(self->expected));
}

/* `expected` is the dictionary of what is known, `numbers` is asked for the rest. */
static PyObject *numbers_of(Note *self, PyObject *statement)
{
    PyObject *found = PyDict_GetItemWithError(self->expected, statement);
    if (found != NULL || PyErr_Occurred())
        return Py_XNewRef(found);
    return PyObject_CallOneArg(self->numbers, statement);
}

static PyObject *tally_rows(Clock *clock, PyObject *number, PyObject *cursor)
{
    PyObject *counted = PyObject_GetAttr(cursor, rowcount_name);
    long long rows = counted == NULL ? -1 : PyLong_AsLongLong(counted);
    Py_XDECREF(counted);
    if (PyErr_Occurred())
        return NULL;
    return rows > 0 ? tally(clock, number, rows) : Py_NewRef(Py_None);
}

static PyObject *note_executed(Note *self, Clock *clock, PyObject *const *args,
                               Py_ssize_t count, PyObject *result)
{
    (void)result;
    if (count < 3)
        Py_RETURN_NONE;
    PyObject *number, *rows, *done = NULL, *numbers = numbers_of(self, args[2]);
    if (numbers != NULL && PyArg_ParseTuple(numbers, "OO", &number, &rows) &&
        (done = tally(clock, number, 1)) != NULL)
        Py_SETREF(done, tally_rows(clock, rows, args[1]));
    Py_XDECREF(numbers);
    return done;
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

static PyObject *computed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return new_note(note_computed, Py_None, Py_None);
}

static PyObject *stated(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *counted, *system, *text;
    if (!PyArg_ParseTuple(args, "O!OO", &PyLong_Type, &counted, &system, &text))
        return NULL;
    PyObject *names = PyTuple_Pack(2, system, text);
    PyObject *note = names == NULL ? NULL : new_note(note_stated, counted, names);
    Py_XDECREF(names);
    return note;
}

static PyObject *executed(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *known_numbers, *numbers;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &known_numbers, &numbers))
        return NULL;
    return new_note(note_executed, known_numbers, numbers);
}

static PyMethodDef functions[] = {
    {"computed", computed, METH_NOARGS, "See keylag_otel.pure."},
    {"executed", executed, METH_VARARGS, "See keylag_otel.pure."},
    {"stated", stated, METH_VARARGS, "See keylag_otel.pure."},
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
    name_name = PyUnicode_InternFromString("name");
    received_name = PyUnicode_InternFromString("received");
    rowcount_name = PyUnicode_InternFromString("rowcount");
    if (layer_name == NULL || hit_name == NULL || miss_name == NULL ||
        name_name == NULL || received_name == NULL || rowcount_name == NULL ||
        PyType_Ready(&NoteType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
