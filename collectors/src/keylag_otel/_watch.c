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
#define SLOTS 128   /* for the tallies of a request; what finds none is kept beyond */

#define KNOWN 64    /* layers whose tallies need not be looked up */

typedef struct {
    long next; /* the tally's number + 1, or 0 while it is free */
    long long sum;
} Slot;

typedef struct {
    PyObject_HEAD
    PyObject *method, *route, *auth_method, *missed, *layer, *counts, *beyond, *events;
    int at;
    long long mark;
    long long cells[CELLS];
    Slot slots[SLOTS];
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
    PyObject *list = PyList_New(counts), *beyond = PyDict_New();
    if (list == NULL || beyond == NULL) {
        Py_XDECREF(list);
        Py_XDECREF(beyond);
        return -1;
    }
    for (int index = 0; index < counts; index++)
        PyList_SET_ITEM(list, index, PyLong_FromLong(0));
    Py_XSETREF(self->method, Py_NewRef(method));
    Py_XSETREF(self->counts, list);
    Py_XSETREF(self->beyond, beyond);
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

/* Add to what a dictionary has under a number; -1 with an exception if it fails. */
static int add_in(PyObject *sums, long number, long long sum)
{
    int failed = -1;
    PyObject *after = NULL, *key = PyLong_FromLong(number);
    PyObject *before = key == NULL ? NULL : PyDict_GetItemWithError(sums, key);
    if (before != NULL)
        sum += PyLong_AsLongLong(before);
    if (!PyErr_Occurred() && (after = PyLong_FromLongLong(sum)) != NULL)
        failed = PyDict_SetItem(sums, key, after);
    Py_XDECREF(after);
    Py_XDECREF(key);
    return failed;
}

/* Add to a tally; returns None, or NULL with an exception. */
static PyObject *tally(Clock *self, PyObject *numbered, long long sum)
{
    long number = PyLong_AsLong(numbered);
    if (PyErr_Occurred())
        return NULL;
    Slot *slot = NULL;
    for (unsigned long probe = 0; slot == NULL && probe < SLOTS; probe++) {
        Slot *tried = &self->slots[((unsigned long)number + probe) % SLOTS];
        if (tried->next == 0 || tried->next == number + 1)
            slot = tried;
    }
    if (slot != NULL) {
        slot->next = number + 1;
        slot->sum += sum;
    } else if (add_in(self->beyond, number, sum) < 0) {
        return NULL;
    }
    write_down(self, "(OO)", Py_None, numbered);
    Py_RETURN_NONE;
}

static PyObject *Clock_tally(Clock *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "tally(number, count=1)");
        return NULL;
    }
    long long sum = count == 2 ? PyLong_AsLongLong(args[1]) : 1;
    return PyErr_Occurred() ? NULL : tally(self, args[0], sum);
}

static PyObject *Clock_add_tallies_to(Clock *self, PyObject *sums)
{
    PyObject *number, *sum;
    Py_ssize_t position = 0;
    for (Slot *slot = self->slots; slot < self->slots + SLOTS; slot++)
        if (slot->next != 0 && add_in(sums, slot->next - 1, slot->sum) < 0)
            return NULL;
    while (PyDict_Next(self->beyond, &position, &number, &sum))
        if (add_in(sums, PyLong_AsLong(number), PyLong_AsLongLong(sum)) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyObject *Clock_tallies(Clock *self, void *Py_UNUSED(closure))
{
    PyObject *sums = PyDict_New();
    PyObject *done = sums == NULL ? NULL : Clock_add_tallies_to(self, sums);
    if (done == NULL)
        Py_CLEAR(sums);
    Py_XDECREF(done);
    return sums;
}

static PyObject *Clock_add_spent_to(Clock *self, PyObject *sums)
{
    for (int cell = 0; cell < CELLS; cell++)
        if (self->cells[cell] != 0 && add_in(sums, cell, self->cells[cell]) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyObject *Clock_spent(Clock *self, PyObject *Py_UNUSED(none))
{
    PyObject *spent = PyDict_New();
    PyObject *done = spent == NULL ? NULL : Clock_add_spent_to(self, spent);
    if (done == NULL)
        Py_CLEAR(spent);
    Py_XDECREF(done);
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
    of(method) of(route) of(auth_method) of(missed) of(layer) of(counts) of(beyond) \
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
    {"add_spent_to", (PyCFunction)Clock_add_spent_to, METH_O, NULL},
    {"add_tallies_to", (PyCFunction)Clock_add_tallies_to, METH_O, NULL},
    {NULL},
};

static PyGetSetDef Clock_getset[] = {
    {"wall_ns", (getter)Clock_wall_ns, NULL, NULL, NULL},
    {"tallies", (getter)Clock_tallies, NULL, NULL, NULL},
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

/* ---- Note: those that are told most, without a call ---- */

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
static PyObject *layer_name, *hit_name, *miss_name, *received_name;

static int is_asked(Clock *clock)
{
    return clock->layer != NULL && clock->layer != Py_None;
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
    if (Py_IS_TYPE(self->before, &NoteType)) {
        Note *note = (Note *)self->before;
        heard(note->tell(note, clock, args, count, NULL), self->call);
        return;
    }
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

static PyObject *in_counts(Clock *clock, Py_ssize_t index)
{
    PyObject *counted = PyList_GetItem(clock->counts, index);
    long long count = counted == NULL ? -1 : PyLong_AsLongLong(counted);
    PyObject *more = PyErr_Occurred() ? NULL : PyLong_FromLongLong(count + 1);
    if (more == NULL || PyList_SetItem(clock->counts, index, more) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Asked_call is to `asked` what Watched_call is to `watch`; `put` is what is counted. */
static PyObject *Asked_call(PyObject *callable, PyObject *const *args, size_t flags,
                            PyObject *names)
{
    Watched *self = (Watched *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *found, *layer = NULL;
    if (PyContextVar_Get(active, NULL, &found) < 0)
        return NULL;
    Clock *clock = (Clock *)found;
    if (count && Py_IS_TYPE(found, &ClockType) && !is_asked(clock) &&
        (layer = PyObject_GetAttr(args[0], layer_name)) == NULL)
        PyErr_Clear();
    if (layer == NULL) {
        Py_XDECREF(found);
        return PyObject_Vectorcall(self->call, args, flags, names);
    }
    Py_XSETREF(clock->layer, layer);
    heard(in_counts(clock, self->put), self->call);
    if (clock->events != NULL && clock->events != Py_None)
        turn(clock, clock->at, self->call);
    PyObject *result = PyObject_Vectorcall(self->call, args, flags, names);
    if (result == NULL)
        tell_failed(self, clock);
    else
        tell_after(self, clock, args, count, result);
    Py_XSETREF(clock->layer, Py_NewRef(Py_None));
    if (clock->events != NULL && clock->events != Py_None)
        turn(clock, clock->at, Py_None);
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

static PyObject *asked(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *call, *after, *failed;
    int counted;
    if (!PyArg_ParseTuple(args, "OiOO", &call, &counted, &after, &failed))
        return NULL;
    PyObject *made = PyObject_CallFunction((PyObject *)&WatchedType, "OiiOOO", call,
                                           CELLS - 1, counted, Py_None, after, failed);
    if (made != NULL)
        ((Watched *)made)->vectorcall = Asked_call;
    return made;
}

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
    {"asked", asked, METH_VARARGS, "See keylag_otel.pure."},
    {"looked_up", looked_up, METH_O, "See keylag_otel.pure."},
    {"got", got, METH_O, "See keylag_otel.pure."},
    {"received", received, METH_O, "See keylag_otel.pure."},
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
    received_name = PyUnicode_InternFromString("received");
    PyObject *module = PyModule_Create(&definition);
    active = PyContextVar_New("keylag_clock", Py_None);
    on_fault = Py_NewRef((PyObject *)&PyBool_Type);
    if (module == NULL || active == NULL || layer_name == NULL || hit_name == NULL ||
        miss_name == NULL || received_name == NULL ||
        PyModule_AddObjectRef(module, "active", active) < 0 ||
        PyModule_AddObjectRef(module, "Clock", (PyObject *)&ClockType) < 0 ||
        PyModule_AddObjectRef(module, "watch", (PyObject *)&WatchedType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
