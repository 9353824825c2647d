/* Notes: what they tell, and how Python makes them; keylag_otel.pure says it. */
#include "module.h"
#include "notes.h"

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
    PyObject *kept = Py_NewRef(or_none(layer)); /* what is read may run Python */
    long number = number_of(kept, name);
    Py_DECREF(kept);
    return number == -1 && PyErr_Occurred() ? -1 : tally(clock, number, sum);
}

static int note_looked_up(Note *self, Clock *clock, PyObject *const *args,
                          Py_ssize_t count, PyObject *result)
{
    PyObject *owner = count ? args[0] : Py_None;
    PyObject *layer = PyObject_GetAttr(owner, layer_name);
    if (layer == NULL)
        return -1;
    PyObject *found = result == self->expected ? miss_name : hit_name;
    int failed = tally_of(clock, layer, found, 1);
    Py_DECREF(layer);
    return failed;
}

/* Before a call there is no result. */
static int tally_found(Note *self, Clock *clock, PyObject *result)
{
    if (result == Py_None || result == self->expected)
        return tally_of(clock, clock->layer, miss_name, 1);
    if (tally_of(clock, clock->layer, hit_name, 1) < 0)
        return -1;
    if (result == NULL || !PyBytes_CheckExact(result))
        return 0;
    return tally_of(clock, clock->layer, received_name, PyBytes_GET_SIZE(result));
}

/* Several keys at once are several look-ups. */
static int note_got(Note *self, Clock *clock, PyObject *const *Py_UNUSED(args),
                    Py_ssize_t Py_UNUSED(count), PyObject *result)
{
    if (result == NULL || !PyList_Check(result))
        return tally_found(self, clock, result);
    int failed = 0;
    for (Py_ssize_t index = 0; !failed && index < PyList_GET_SIZE(result); index++) {
        PyObject *one = Py_NewRef(PyList_GET_ITEM(result, index));
        failed = tally_found(self, clock, one);
        Py_DECREF(one);
    }
    return failed;
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

static int read_pair(PyObject *pair, long *one, long *other)
{
    if (PyTuple_Check(pair))
        return PyArg_ParseTuple(pair, "ll", one, other) ? 0 : -1;
    PyErr_SetString(PyExc_TypeError, "two numbers are wanted, in a tuple");
    return -1;
}

/* Ask for the numbers of a hit and of a miss, once. */
SELDOM static int ask_for_numbers(Note *self)
{
    PyObject *source = Py_NewRef(self->source); /* another thread may be done first */
    PyObject *given = PyObject_CallNoArgs(source);
    int failed = given == NULL;
    if (!failed)
        failed = read_pair(given, &self->numbers[0], &self->numbers[1]);
    if (!failed)
        Py_XSETREF(self->source, Py_NewRef(Py_None));
    Py_XDECREF(given);
    Py_DECREF(source);
    return failed ? -1 : 0;
}

static int note_memoized(Note *self, Clock *clock, PyObject *const *Py_UNUSED(args),
                         Py_ssize_t Py_UNUSED(count), PyObject *Py_UNUSED(result))
{
    int missed = or_none(clock->missed) == self->expected;
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
    count_one(clock, self->numbers[0]);
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
    int failed = numbers == NULL ? -1 : read_pair(numbers, &executions, &returned);
    Py_XDECREF(numbers);
    if (failed || tally(clock, executions, 1) < 0)
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

/* Have it told from Python, as note(clock, args, result). */
static PyObject *Note_call(Note *self, PyObject *given, PyObject *kwargs)
{
    PyObject *args, *result;
    Clock *clock;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "note(clock, args, result)");
        return NULL;
    }
    if (!PyArg_ParseTuple(given, "O!O!O", &ClockType, &clock, &PyTuple_Type, &args,
                          &result) ||
        self->tell(self, clock, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args),
                   result) < 0)
        return NULL;
    Py_RETURN_NONE;
}

#define EACH_OBJECT(of) of(expected) of(source)
COLLECTED(Note, EACH_OBJECT, (void)0)

PyTypeObject NoteType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Note",
    .tp_basicsize = sizeof(Note),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = (destructor)Note_dealloc,
    .tp_traverse = (traverseproc)Note_traverse,
    .tp_call = (ternaryfunc)Note_call,
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
    Py_ssize_t index = PyNumber_AsSsize_t(given, NULL);
    if (index < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "no argument has that index");
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
    Py_ssize_t counted;
    PyObject *system, *text;
    if (!PyArg_ParseTuple(args, "O&OO", to_index, &counted, &system, &text))
        return NULL;
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
    if (intern(&layer_name, "_keylag_layer") < 0 || intern(&hit_name, "hit") < 0 ||
        intern(&miss_name, "miss") < 0 || intern(&name_name, "name") < 0 ||
        intern(&received_name, "received") < 0 ||
        intern(&rowcount_name, "rowcount") < 0 || PyType_Ready(&NoteType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
