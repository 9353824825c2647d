/* Notes: what they tell, and how Python makes them; keylag_otel.pure says it. */
#include "module.h"
#include "notes.h"

#define KNOWN 64 /* layers whose tallies need not be looked up */

PyObject *layer_name;
static PyObject *hit_name, *miss_name, *name_name, *received_name, *rowcount_name;

/* Read a number that is an attribute of a layer; -1 with an exception. */
static long number_of(PyObject *layer, PyObject *name)
{
    PyObject *read = PyObject_GetAttr(layer, name);
    long number = read == NULL ? -1 : PyLong_AsLong(read);
    Py_XDECREF(read);
    return number;
}

/* Add to the tally that is an attribute of a layer. */
static int tally_of(Clock *clock, PyObject *layer, PyObject *name, long long sum)
{
    if (layer == NULL) {
        PyErr_SetString(PyExc_AttributeError, "no layer is asked");
        return -1;
    }
    long number = number_of(layer, name);
    return number == -1 && PyErr_Occurred() ? -1 : tally(clock, number, sum);
}

/* The tallies of what was given its layer, by its address; it is kept alive. */
typedef struct {
    PyObject *owner;
    long hit, miss;
} Known;

static Known known[KNOWN];

SELDOM static Known *get_to_know(Known *entry, PyObject *owner)
{
    PyObject *layer = PyObject_GetAttr(owner, layer_name);
    if (layer == NULL)
        return NULL;
    long hit = number_of(layer, hit_name);
    long miss = PyErr_Occurred() ? -1 : number_of(layer, miss_name);
    Py_DECREF(layer);
    if (PyErr_Occurred())
        return NULL;
    entry->hit = hit;
    entry->miss = miss;
    Py_XSETREF(entry->owner, Py_NewRef(owner));
    return entry;
}

static int note_looked_up(Note *self, Clock *clock, PyObject *const *args,
                          Py_ssize_t count, PyObject *result)
{
    PyObject *owner = count ? args[0] : Py_None;
    Known *entry = &known[(size_t)owner / 16 % KNOWN];
    if (entry->owner != owner && get_to_know(entry, owner) == NULL)
        return -1;
    return tally(clock, result == self->expected ? entry->miss : entry->hit, 1);
}

/* Several keys at once are several look-ups. */
static int note_got(Note *self, Clock *clock, PyObject *const *args, Py_ssize_t count,
                    PyObject *result)
{
    if (PyList_Check(result)) {
        for (Py_ssize_t index = 0; index < PyList_GET_SIZE(result); index++)
            if (note_got(self, clock, args, count, PyList_GET_ITEM(result, index)) < 0)
                return -1;
        return 0;
    }
    if (result == Py_None || result == self->expected)
        return tally_of(clock, clock->layer, miss_name, 1);
    int done = tally_of(clock, clock->layer, hit_name, 1);
    if (done < 0 || !PyBytes_CheckExact(result))
        return done;
    return tally_of(clock, clock->layer, received_name, PyBytes_GET_SIZE(result));
}

/* `numbers` is which argument it is. */
static int note_received(Note *self, Clock *clock, PyObject *const *args,
                         Py_ssize_t count, PyObject *Py_UNUSED(result))
{
    if (!is_asked(clock) || self->numbers[0] >= count)
        return 0;
    PyObject *value = args[self->numbers[0]];
    long long bytes =
        PyLong_Check(value) ? PyLong_AsLongLong(value) : PyObject_Length(value);
    if (bytes == -1 && PyErr_Occurred())
        return -1;
    return tally_of(clock, clock->layer, received_name, bytes);
}

/* Ask for the numbers of a hit and of a miss, once. */
SELDOM static int ask_for_numbers(Note *self)
{
    PyObject *source = Py_NewRef(self->source); /* another thread may be done first */
    PyObject *given = PyObject_CallNoArgs(source);
    Py_DECREF(source);
    int known_now = given != NULL && PyArg_ParseTuple(given, "ll", &self->numbers[0],
                                                      &self->numbers[1]);
    Py_XDECREF(given);
    if (!known_now)
        return -1;
    Py_SETREF(self->source, Py_NewRef(Py_None));
    return 0;
}

static int note_memoized(Note *self, Clock *clock, PyObject *const *Py_UNUSED(args),
                         Py_ssize_t Py_UNUSED(count), PyObject *Py_UNUSED(result))
{
    int missed = clock->missed == self->expected;
    Py_CLEAR(clock->missed);
    if (self->source != Py_None && ask_for_numbers(self) < 0)
        return -1;
    return tally(clock, self->numbers[missed], 1);
}

static int note_computed(Note *Py_UNUSED(self), Clock *clock, PyObject *const *args,
                         Py_ssize_t count, PyObject *Py_UNUSED(result))
{
    if (count)
        Py_XSETREF(clock->missed, Py_NewRef(args[0]));
    return 0;
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

/* `numbers` is what is counted, `source` the names of the two notes. */
static int note_stated(Note *self, Clock *clock, PyObject *const *args,
                       Py_ssize_t count, PyObject *Py_UNUSED(result))
{
    clock->counts[self->numbers[0]]++;
    if (!clock->writes || count < 3)
        return 0;
    PyObject *dialect = PyObject_GetAttr(args[0], name_name);
    if (note_down(clock, PyTuple_GET_ITEM(self->source, 0), dialect) < 0)
        return -1;
    return note_down(clock, PyTuple_GET_ITEM(self->source, 1), Py_NewRef(args[2]));
}

/* `expected` is the dictionary of what is known, `source` is asked for the rest. */
static PyObject *numbers_of(Note *self, PyObject *statement)
{
    PyObject *found = PyDict_GetItemWithError(self->expected, statement);
    if (found != NULL || PyErr_Occurred())
        return Py_XNewRef(found);
    return PyObject_CallOneArg(self->source, statement);
}

static int tally_rows(Clock *clock, long number, PyObject *cursor)
{
    PyObject *counted = PyObject_GetAttr(cursor, rowcount_name);
    long long rows = counted == NULL ? -1 : PyLong_AsLongLong(counted);
    Py_XDECREF(counted);
    if (rows > 0)
        return tally(clock, number, rows);
    return PyErr_Occurred() ? -1 : 0;
}

static int note_executed(Note *self, Clock *clock, PyObject *const *args,
                         Py_ssize_t count, PyObject *Py_UNUSED(result))
{
    long executions, returned;
    if (count < 3)
        return 0;
    PyObject *numbers = numbers_of(self, args[2]);
    int known_now =
        numbers != NULL && PyArg_ParseTuple(numbers, "ll", &executions, &returned);
    Py_XDECREF(numbers);
    if (!known_now || tally(clock, executions, 1) < 0)
        return -1;
    return tally_rows(clock, returned, args[1]);
}

static PyObject *new_note(Telling tell, PyObject *expected, PyObject *source, long number)
{
    Note *self = (Note *)NoteType.tp_alloc(&NoteType, 0);
    if (self == NULL)
        return NULL;
    self->tell = tell;
    self->expected = Py_NewRef(expected);
    self->source = Py_NewRef(source);
    self->numbers[0] = number;
    return (PyObject *)self;
}

#define EACH_OBJECT(of) of(expected) of(source)
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
    return new_note(note_looked_up, no_value, Py_None, 0);
}

static PyObject *got(PyObject *Py_UNUSED(module), PyObject *no_value)
{
    return new_note(note_got, no_value, Py_None, 0);
}

static PyObject *received(PyObject *Py_UNUSED(module), PyObject *given)
{
    long index = PyLong_AsLong(given);
    if (index < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "which argument it is");
        return NULL;
    }
    return new_note(note_received, Py_None, Py_None, index);
}

static PyObject *memoized(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *region, *numbers;
    if (!PyArg_ParseTuple(args, "OO", &region, &numbers))
        return NULL;
    return new_note(note_memoized, region, numbers, 0);
}

static PyObject *computed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return new_note(note_computed, Py_None, Py_None, 0);
}

static PyObject *stated(PyObject *Py_UNUSED(module), PyObject *args)
{
    long counted;
    PyObject *system, *text;
    if (!PyArg_ParseTuple(args, "lOO", &counted, &system, &text))
        return NULL;
    if (counted < 0 || counted >= MOST) {
        PyErr_SetString(PyExc_ValueError, "stated(counted, system, text)");
        return NULL;
    }
    PyObject *names = PyTuple_Pack(2, system, text);
    PyObject *note = names == NULL ? NULL : new_note(note_stated, Py_None, names, counted);
    Py_XDECREF(names);
    return note;
}

static PyObject *executed(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *known_numbers, *numbers;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &known_numbers, &numbers))
        return NULL;
    return new_note(note_executed, known_numbers, numbers, 0);
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
