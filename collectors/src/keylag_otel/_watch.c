/* What runs a hundred times in a request, in C: keylag_otel.pure says what it does.
 *
 * Both have the same names and pass the same tests.  Here a watched call hands
 * its arguments on where they lie, without a tuple or a dictionary of its own.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <time.h>

#define CELLS 256   /* operation << 4 | phase, both below 16 */
#define EVENTS 8192 /* model.EVENT_LIMIT */

typedef struct {
    PyObject_HEAD
    PyObject *method, *route, *auth_method, *missed, *layer, *counts, *tallies, *events;
    int at;
    long long mark;
    long long cells[CELLS];
} Clock;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *call, *before, *after, *failed;
    int keep, put;
} Watched;

static PyTypeObject ClockType, WatchedType;
static PyObject *active;   /* the context variable */
static PyObject *reader;   /* what tests read in place of the clock, or NULL */
static PyObject *on_fault; /* told of an exception of our own */

static long long now(void)
{
    if (reader != NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *moment = PyObject_CallNoArgs(reader);
        long long nanoseconds = moment == NULL ? 0 : PyLong_AsLongLong(moment);
        Py_XDECREF(moment);
        PyErr_Restore(type, value, traceback);
        return nanoseconds;
    }
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec * 1000000000LL + moment.tv_nsec;
}

/* ---- Clock ---- */

/* Write an event down if the request may be traced; what is raised stays so. */
static void write_down(Clock *self, const char *format, ...)
{
    PyObject *type, *value, *traceback;
    if (self->events == NULL || !PyList_CheckExact(self->events) ||
        PyList_GET_SIZE(self->events) >= EVENTS)
        return;
    va_list parts;
    va_start(parts, format);
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *event = Py_VaBuildValue(format, parts);
    va_end(parts);
    if (event == NULL || PyList_Append(self->events, event) < 0)
        PyErr_Clear();
    Py_XDECREF(event);
    PyErr_Restore(type, value, traceback);
}

static void book(Clock *self)
{
    long long moment = now();
    self->cells[self->at] += moment - self->mark;
    self->mark = moment;
}

static int turn(Clock *self, int cell, PyObject *call)
{
    int before = self->at;
    book(self);
    self->at = cell & (CELLS - 1);
    write_down(self, "(LiO)", self->mark, self->at, call);
    return before;
}

static int Clock_init(Clock *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"method", "at", "counts", NULL};
    PyObject *method;
    int at, counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oii", names, &method, &at, &counts))
        return -1;
    PyObject *list = PyList_New(counts), *tallies = PyDict_New();
    if (list == NULL || tallies == NULL) {
        Py_XDECREF(list);
        Py_XDECREF(tallies);
        return -1;
    }
    for (int index = 0; index < counts; index++)
        PyList_SET_ITEM(list, index, PyLong_FromLong(0));
    Py_XSETREF(self->method, Py_NewRef(method));
    Py_XSETREF(self->counts, list);
    Py_XSETREF(self->tallies, tallies);
    self->at = at & (CELLS - 1);
    self->mark = now();
    return 0;
}

static PyObject *Clock_turn(Clock *self, PyObject *args)
{
    int cell;
    PyObject *call = Py_None;
    if (!PyArg_ParseTuple(args, "i|O", &cell, &call))
        return NULL;
    return PyLong_FromLong(turn(self, cell, call));
}

static PyObject *Clock_note(Clock *self, PyObject *args)
{
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "OO", &name, &value))
        return NULL;
    write_down(self, "(OO)", name, value);
    Py_RETURN_NONE;
}

static PyObject *Clock_book(Clock *self, PyObject *Py_UNUSED(none))
{
    book(self);
    Py_RETURN_NONE;
}

static PyObject *Clock_resume(Clock *self, PyObject *Py_UNUSED(none))
{
    self->mark = now();
    Py_RETURN_NONE;
}

static PyObject *tally(Clock *self, PyObject *number, long long sum)
{
    PyObject *before = PyDict_GetItemWithError(self->tallies, number);
    if (before != NULL)
        sum += PyLong_AsLongLong(before);
    if (PyErr_Occurred())
        return NULL;
    PyObject *after = PyLong_FromLongLong(sum);
    int failed = after == NULL || PyDict_SetItem(self->tallies, number, after) < 0;
    Py_XDECREF(after);
    if (failed)
        return NULL;
    write_down(self, "(OO)", Py_None, number);
    Py_RETURN_NONE;
}

static PyObject *Clock_tally(Clock *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "tally(number, count=1)");
        return NULL;
    }
    return tally(self, args[0], count == 2 ? PyLong_AsLongLong(args[1]) : 1);
}

static PyObject *Clock_spent(Clock *self, PyObject *Py_UNUSED(none))
{
    PyObject *spent = PyDict_New();
    for (int cell = 0; spent != NULL && cell < CELLS; cell++) {
        if (self->cells[cell] == 0)
            continue;
        PyObject *key = PyLong_FromLong(cell);
        PyObject *value = PyLong_FromLongLong(self->cells[cell]);
        if (key == NULL || value == NULL || PyDict_SetItem(spent, key, value) < 0)
            Py_CLEAR(spent);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return spent;
}

static PyObject *Clock_wall_ns(Clock *self, void *Py_UNUSED(closure))
{
    long long wall = 0;
    for (int cell = 0; cell < CELLS; cell++)
        wall += self->cells[cell];
    return PyLong_FromLongLong(wall);
}

#define EACH_OBJECT(of) \
    of(method) of(route) of(auth_method) of(missed) of(layer) of(counts) of(tallies) \
    of(events)

static int Clock_traverse(Clock *self, visitproc visit, void *arg)
{
#define VISIT(name) Py_VISIT(self->name);
    EACH_OBJECT(VISIT)
    return 0;
}

static int Clock_clear(Clock *self)
{
#define CLEAR(name) Py_CLEAR(self->name);
    EACH_OBJECT(CLEAR)
    return 0;
}

static void Clock_dealloc(Clock *self)
{
    PyObject_GC_UnTrack(self);
    Clock_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef Clock_members[] = {
#define MEMBER(name) {#name, T_OBJECT, offsetof(Clock, name), 0, NULL},
    EACH_OBJECT(MEMBER)
    {"at", T_INT, offsetof(Clock, at), 0, NULL},
    {"mark", T_LONGLONG, offsetof(Clock, mark), 0, NULL},
    {NULL},
};

static PyMethodDef Clock_methods[] = {
    {"turn", (PyCFunction)Clock_turn, METH_VARARGS, NULL},
    {"note", (PyCFunction)Clock_note, METH_VARARGS, NULL},
    {"book", (PyCFunction)Clock_book, METH_NOARGS, NULL},
    {"resume", (PyCFunction)Clock_resume, METH_NOARGS, NULL},
    {"tally", (PyCFunction)(void (*)(void))Clock_tally, METH_FASTCALL, NULL},
    {"spent", (PyCFunction)Clock_spent, METH_NOARGS, NULL},
    {NULL},
};

static PyGetSetDef Clock_getset[] = {
    {"wall_ns", (getter)Clock_wall_ns, NULL, NULL, NULL},
    {NULL},
};

static PyTypeObject ClockType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Clock",
    .tp_doc = "Self times of one request; see keylag_otel.pure.",
    .tp_basicsize = sizeof(Clock),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Clock_init,
    .tp_dealloc = (destructor)Clock_dealloc,
    .tp_traverse = (traverseproc)Clock_traverse,
    .tp_clear = (inquiry)Clock_clear,
    .tp_members = Clock_members,
    .tp_methods = Clock_methods,
    .tp_getset = Clock_getset,
};

/* ---- Note: the two that are called most, without a call ---- */

typedef struct Note Note;

/* A note as told by Watched_call; of a call that failed there is no result. */
typedef PyObject *(*Telling)(Note *, Clock *, PyObject *const *args, Py_ssize_t count,
                             PyObject *result);

struct Note {
    PyObject_HEAD
    Telling tell;
    PyObject *expected, *numbers;
};

static PyTypeObject NoteType;
static PyObject *layer_name, *hit_name, *miss_name;

static PyObject *note_looked_up(Note *self, Clock *clock, PyObject *const *args,
                                Py_ssize_t count, PyObject *result)
{
    PyObject *layer = PyObject_GetAttr(count ? args[0] : Py_None, layer_name);
    if (layer == NULL)
        return NULL;
    PyObject *number =
        PyObject_GetAttr(layer, result == self->expected ? miss_name : hit_name);
    PyObject *done = number == NULL ? NULL : tally(clock, number, 1);
    Py_XDECREF(number);
    Py_DECREF(layer);
    return done;
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

static int Note_traverse(Note *self, visitproc visit, void *arg)
{
    Py_VISIT(self->expected);
    Py_VISIT(self->numbers);
    return 0;
}

static int Note_clear(Note *self)
{
    Py_CLEAR(self->expected);
    Py_CLEAR(self->numbers);
    return 0;
}

static void Note_dealloc(Note *self)
{
    PyObject_GC_UnTrack(self);
    Note_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject NoteType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Note",
    .tp_basicsize = sizeof(Note),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = (destructor)Note_dealloc,
    .tp_traverse = (traverseproc)Note_traverse,
    .tp_clear = (inquiry)Note_clear,
};

/* ---- Watched ---- */

/* What a note raises is told, and forgotten. */
static void heard(PyObject *answer, PyObject *call)
{
    if (answer == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        answer = PyObject_CallOneArg(on_fault, call);
    }
    if (answer == NULL)
        PyErr_Clear();
    Py_XDECREF(answer);
}

static PyObject *tuple_of(PyObject *const *args, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t index = 0; tuple != NULL && index < count; index++)
        PyTuple_SET_ITEM(tuple, index, Py_NewRef(args[index]));
    return tuple;
}

static PyObject *dict_of(PyObject *const *values, PyObject *names)
{
    PyObject *dict = PyDict_New();
    Py_ssize_t count = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t index = 0; dict != NULL && index < count; index++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, index), values[index]) < 0)
            Py_CLEAR(dict);
    return dict;
}

static void tell_before(Watched *self, Clock *clock, PyObject *const *args,
                        Py_ssize_t count, PyObject *names)
{
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count),
                        dict_of(args + count, names)};
    PyObject *answer = NULL;
    if (told[1] != NULL && told[2] != NULL)
        answer = PyObject_Vectorcall(self->before, told, 3, NULL);
    heard(answer, self->call);
    Py_XDECREF(told[1]);
    Py_XDECREF(told[2]);
}

static void tell_after(Watched *self, Clock *clock, PyObject *const *args,
                       Py_ssize_t count, PyObject *result)
{
    if (Py_IS_TYPE(self->after, &NoteType)) {
        Note *note = (Note *)self->after;
        heard(note->tell(note, clock, args, count, result), self->call);
        return;
    }
    PyObject *told[] = {(PyObject *)clock, tuple_of(args, count), result};
    PyObject *answer = NULL;
    if (told[1] != NULL)
        answer = PyObject_Vectorcall(self->after, told, 3, NULL);
    heard(answer, self->call);
    Py_XDECREF(told[1]);
}

static void tell_failed(Watched *self, Clock *clock)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *told[] = {(PyObject *)clock, value};
    if (Py_IS_TYPE(self->failed, &NoteType)) {
        Note *note = (Note *)self->failed;
        heard(note->tell(note, clock, NULL, 0, NULL), self->call);
    } else {
        heard(PyObject_Vectorcall(self->failed, told, 2, NULL), self->call);
    }
    PyErr_Restore(type, value, traceback);
}

static PyObject *Watched_call(PyObject *callable, PyObject *const *args, size_t flags,
                              PyObject *names)
{
    Watched *self = (Watched *)callable;
    PyObject *found;
    if (PyContextVar_Get(active, NULL, &found) < 0)
        return NULL;
    if (!Py_IS_TYPE(found, &ClockType)) {
        Py_XDECREF(found);
        return PyObject_Vectorcall(self->call, args, flags, names);
    }
    Clock *clock = (Clock *)found;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    int outside = clock->at;
    int inside = (outside & self->keep) | self->put;
    if (inside != outside)
        turn(clock, inside, self->call);
    if (self->before != Py_None)
        tell_before(self, clock, args, count, names);
    PyObject *result = PyObject_Vectorcall(self->call, args, flags, names);
    if (result == NULL && self->failed != Py_None)
        tell_failed(self, clock);
    else if (result != NULL && self->after != Py_None)
        tell_after(self, clock, args, count, result);
    if (inside != outside)
        turn(clock, outside, Py_None);
    Py_DECREF(found);
    return result;
}

static PyObject *Watched_get(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

/* What it does not have itself, its name and its text above all, is the call's. */
static PyObject *Watched_getattr(PyObject *self, PyObject *name)
{
    PyObject *call = ((Watched *)self)->call;
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
        return Py_NewRef(call);
    return PyObject_GetAttr(call, name);
}

static int Watched_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((Watched *)self)->call, name, value);
}

static PyObject *Watched_repr(Watched *self)
{
    return PyUnicode_FromFormat("<watched %R>", self->call);
}

static int Watched_traverse(Watched *self, visitproc visit, void *arg)
{
    Py_VISIT(self->call);
    Py_VISIT(self->before);
    Py_VISIT(self->after);
    Py_VISIT(self->failed);
    return 0;
}

static int Watched_clear(Watched *self)
{
    Py_CLEAR(self->call);
    Py_CLEAR(self->before);
    Py_CLEAR(self->after);
    Py_CLEAR(self->failed);
    return 0;
}

static void Watched_dealloc(Watched *self)
{
    PyObject_GC_UnTrack(self);
    Watched_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *Watched_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"call", "keep", "put", "before", "after", "failed", NULL};
    PyObject *call, *before = Py_None, *after = Py_None, *failed = Py_None;
    int keep = CELLS - 1, put = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|iiOOO", names, &call, &keep,
                                     &put, &before, &after, &failed))
        return NULL;
    Watched *self = (Watched *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = Watched_call;
    self->call = Py_NewRef(call);
    self->before = Py_NewRef(before);
    self->after = Py_NewRef(after);
    self->failed = Py_NewRef(failed);
    self->keep = keep & (CELLS - 1);
    self->put = put & (CELLS - 1);
    return (PyObject *)self;
}

static PyTypeObject WatchedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.watch",
    .tp_doc = "A watched call; see keylag_otel.pure.",
    .tp_basicsize = sizeof(Watched),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = Watched_new,
    .tp_dealloc = (destructor)Watched_dealloc,
    .tp_traverse = (traverseproc)Watched_traverse,
    .tp_clear = (inquiry)Watched_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Watched, vectorcall),
    .tp_descr_get = Watched_get,
    .tp_getattro = Watched_getattr,
    .tp_setattro = Watched_setattr,
    .tp_repr = (reprfunc)Watched_repr,
};

/* ---- module ---- */

static PyObject *looked_up(PyObject *Py_UNUSED(module), PyObject *no_value)
{
    return new_note(note_looked_up, no_value, Py_None);
}

static PyObject *memoized(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *region, *numbers;
    if (!PyArg_ParseTuple(args, "OO", &region, &numbers))
        return NULL;
    return new_note(note_memoized, region, numbers);
}

static PyObject *read_with(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_XSETREF(reader, given == Py_None ? NULL : Py_NewRef(given));
    Py_RETURN_NONE;
}

static PyObject *tell_faults(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_XSETREF(on_fault, Py_NewRef(given));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"read_with", read_with, METH_O, "Read the time, in nanoseconds, by this; or None."},
    {"tell_faults", tell_faults, METH_O, "Call this with a call that a note failed on."},
    {"looked_up", looked_up, METH_O, "See keylag_otel.pure."},
    {"memoized", memoized, METH_VARARGS, "See keylag_otel.pure."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "keylag_otel._watch",
    .m_doc = "keylag_otel.pure in C.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__watch(void)
{
    if (PyType_Ready(&ClockType) < 0 || PyType_Ready(&WatchedType) < 0 ||
        PyType_Ready(&NoteType) < 0)
        return NULL;
    layer_name = PyUnicode_InternFromString("_keylag_layer");
    hit_name = PyUnicode_InternFromString("hit");
    miss_name = PyUnicode_InternFromString("miss");
    PyObject *module = PyModule_Create(&definition);
    active = PyContextVar_New("keylag_clock", Py_None);
    on_fault = Py_NewRef((PyObject *)&PyBool_Type);
    if (module == NULL || active == NULL || layer_name == NULL || hit_name == NULL ||
        miss_name == NULL ||
        PyModule_AddObjectRef(module, "active", active) < 0 ||
        PyModule_AddObjectRef(module, "Clock", (PyObject *)&ClockType) < 0 ||
        PyModule_AddObjectRef(module, "watch", (PyObject *)&WatchedType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
