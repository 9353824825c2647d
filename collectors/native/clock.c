/* A clock as Python sees it: keylag_otel.pure says what it does. */
#include "clock.h"
#include "module.h"

#include <structmember.h>

#define FIRST_ROOM 1024 /* events; twice as many when they are full */

static PyObject *method_name;

long long read_time(void)
{
    PyObject *raised = take_raised();
    PyObject *moment = call_kept(reader, NULL, 0);
    long long nanoseconds = moment == NULL ? 0 : PyLong_AsLongLong(moment);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        nanoseconds = 0;
    }
    Py_XDECREF(moment);
    raise_again(raised);
    return nanoseconds;
}

void append(Clock *self, long long moment, int cell, PyObject *what)
{
    if (self->written == self->room) {
        int room = self->room ? 2 * self->room : FIRST_ROOM;
        Event *grown = room > EVENTS ? NULL : PyMem_Realloc(self->events, room * sizeof(Event));
        if (grown == NULL)
            return;
        self->events = grown;
        self->room = room;
    }
    self->events[self->written++] = (Event){moment, Py_XNewRef(what), cell};
}

static PyObject *as_tuple(const Event *event)
{
    if (event->cell == NOTED)
        return Py_NewRef(event->what);
    if (event->cell == TALLIED)
        return Py_BuildValue("(OL)", Py_None, event->moment);
    return Py_BuildValue("(LiO)", event->moment, event->cell, or_none(event->what));
}

static int append_to(PyObject *list, const Event *event)
{
    PyObject *tuple = as_tuple(event);
    int failed = tuple == NULL ? -1 : PyList_Append(list, tuple);
    Py_XDECREF(tuple);
    return failed;
}

/* To make the list may run Python, which may have more events written down. */
static PyObject *Clock_events(Clock *self, void *Py_UNUSED(closure))
{
    PyObject *list = PyList_New(0);
    for (int index = 0; list != NULL && index < self->written; index++) {
        Event event = self->events[index];
        Py_XINCREF(event.what);
        if (append_to(list, &event) < 0)
            Py_CLEAR(list);
        Py_XDECREF(event.what);
    }
    return list;
}

static PyObject *Clock_is_full(Clock *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->written >= EVENTS);
}

int no_tally(long number)
{
    PyErr_Format(PyExc_ValueError, "no tally has the number %ld", number);
    return -1;
}

int too_large(void)
{
    PyErr_SetString(PyExc_OverflowError, "a sum is larger than 64 bits hold");
    return -1;
}

int add_in(void *into, long number, long long sum)
{
    PyObject *sums = into;
    int failed = -1;
    PyObject *after = NULL, *key = PyLong_FromLong(number);
    PyObject *before = key == NULL ? NULL : PyDict_GetItemWithError(sums, key);
    long long known = before == NULL ? 0 : PyLong_AsLongLong(before);
    if (!PyErr_Occurred() && __builtin_add_overflow(known, sum, &sum))
        too_large();
    if (!PyErr_Occurred() && (after = PyLong_FromLongLong(sum)) != NULL)
        failed = PyDict_SetItem(sums, key, after);
    Py_XDECREF(after);
    Py_XDECREF(key);
    return failed;
}

Slot *slot_beyond(Slots *slots, long number)
{
    if (slots->beyond == NULL)
        slots->beyond = PyMem_Calloc(1, sizeof(Slots));
    if (slots->beyond == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    return slot_of(slots->beyond, number);
}

long to_long(PyObject *given)
{
    int overflow;
    long number = PyLong_AsLongAndOverflow(given, &overflow);
    return overflow == 0 ? number : overflow < 0 ? LONG_MIN : LONG_MAX;
}

static int to_below(PyObject *given, Py_ssize_t limit, Py_ssize_t *read)
{
    Py_ssize_t number = PyNumber_AsSsize_t(given, NULL);
    if (number == -1 && PyErr_Occurred())
        return 0;
    if (number < 0 || number >= limit) {
        PyErr_Format(PyExc_ValueError, "%zd is not from 0 to %zd", number, limit - 1);
        return 0;
    }
    *read = number;
    return 1;
}

int to_size(PyObject *given, void *size)
{
    return to_below(given, MOST + 1, size);
}

int to_index(PyObject *given, void *index)
{
    return to_below(given, MOST, index);
}

int set_only(PyObject *self, PyObject *name, PyObject *value)
{
    if (value != NULL)
        return PyObject_GenericSetAttr(self, name, value);
    PyErr_Format(PyExc_AttributeError, "%R of a %.100s cannot be deleted", name,
                 Py_TYPE(self)->tp_name);
    return -1;
}

static Clock *new_clock(PyObject *method, unsigned int at, Py_ssize_t counts)
{
    Clock *self = (Clock *)PyType_GenericAlloc(&ClockType, 0);
    if (self == NULL)
        return NULL;
    self->method = Py_NewRef(method);
    self->counted = (int)counts;
    self->at = at & (CELLS - 1);
    self->thread = this_thread();
    self->mark = self->began = now();
    return self;
}

/* There is no __init__: what there is is complete, and stays what it is. */
static PyObject *Clock_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                           PyObject *kwargs)
{
    static char *names[] = {"method", "at", "counts", NULL};
    PyObject *method;
    unsigned int at;
    Py_ssize_t counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OIO&", names, &method, &at, to_size,
                                     &counts))
        return NULL;
    return (PyObject *)new_clock(method, at, counts);
}

static PyObject *Clock_get_at(Clock *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(self->at);
}

static int Clock_set_at(Clock *self, PyObject *given, void *Py_UNUSED(closure))
{
    unsigned long cell = PyLong_AsUnsignedLongMask(given);
    if (PyErr_Occurred())
        return -1;
    self->at = cell & (CELLS - 1);
    return 0;
}

static PyObject *Clock_turn(Clock *self, PyObject *args)
{
    unsigned int cell;
    PyObject *call = NULL;
    if (!PyArg_ParseTuple(args, "I|O", &cell, &call))
        return NULL;
    return PyLong_FromLong(turn(self, cell, call));
}

static PyObject *Clock_note(Clock *self, PyObject *args)
{
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "OO", &name, &value))
        return NULL;
    if (self->writes)
        append(self, 0, NOTED, args);
    Py_RETURN_NONE;
}

static PyObject *Clock_skip(Clock *self, PyObject *Py_UNUSED(none))
{
    self->mark = now();
    Py_RETURN_NONE;
}

static PyObject *Clock_book(Clock *self, PyObject *Py_UNUSED(none))
{
    book(self);
    Py_RETURN_NONE;
}

static PyObject *Clock_tally(Clock *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "tally(number, count=1)");
        return NULL;
    }
    long number = to_long(args[0]);
    if (!PyErr_Occurred() && (unsigned long)number >= TALLIES_LIMIT)
        no_tally(number);
    long long sum = PyErr_Occurred() || count == 1 ? 1 : PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || tally(self, number, sum) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *Clock_count(Clock *self, PyObject *given)
{
    Py_ssize_t index = PyNumber_AsSsize_t(given, NULL);
    if (PyErr_Occurred())
        return NULL;
    if (index < 0 || index >= self->counted) {
        PyErr_SetString(PyExc_IndexError, "no such count");
        return NULL;
    }
    self->counts[index]++;
    Py_RETURN_NONE;
}

int add_each(const Slots *slots, Adding add, void *sums)
{
    for (; slots != NULL; slots = slots->beyond)
        for (const Slot *slot = slots->slots; slot < slots->slots + SLOTS; slot++)
            if (slot->next != 0 && add(sums, slot->next - 1, slot->sum) < 0)
                return -1;
    return 0;
}

void empty(Slots *slots)
{
    Slots *beyond = slots->beyond;
    memset(slots, 0, sizeof(Slots));
    while (beyond != NULL) {
        Slots *freed = beyond;
        beyond = freed->beyond;
        PyMem_Free(freed);
    }
}

PyObject *list_of(const long long *numbers, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t index = 0; list != NULL && index < count; index++) {
        PyObject *number = PyLong_FromLongLong(numbers[index]);
        if (number == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, index, number);
    }
    return list;
}

PyObject *spent_of(const long long *cells)
{
    PyObject *sums = PyDict_New();
    for (int cell = 0; sums != NULL && cell < CELLS; cell++)
        if (cells[cell] != 0 && add_in(sums, cell, cells[cell]) < 0)
            Py_CLEAR(sums);
    return sums;
}

long long wall_of(const long long *cells)
{
    long long wall = 0;
    for (int cell = 0; cell < CELLS; cell++)
        wall = plus(wall, cells[cell]);
    return wall;
}

static PyObject *Clock_spent(Clock *self, PyObject *Py_UNUSED(none))
{
    return spent_of(self->cells);
}

static PyObject *Clock_tallies(Clock *self, void *Py_UNUSED(closure))
{
    PyObject *sums = PyDict_New();
    if (sums != NULL && add_each(&self->tallies, add_in, sums) < 0)
        Py_CLEAR(sums);
    return sums;
}

static PyObject *Clock_counts(Clock *self, void *Py_UNUSED(closure))
{
    return list_of(self->counts, self->counted);
}

static PyObject *Clock_wall_ns(Clock *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(wall_of(self->cells));
}

#define EACH_OBJECT(of) \
    of(method) of(route) of(auth_method) of(missed) of(layer) of(environ)

static int Clock_traverse(Clock *self, visitproc visit, void *arg)
{
    EACH_OBJECT(VISIT)
    for (int index = 0; index < self->written; index++)
        Py_VISIT(self->events[index].what);
    return 0;
}

static int Clock_clear(Clock *self)
{
    Event *events = self->events;
    int written = self->written;
    self->events = NULL;
    self->written = self->room = 0;
    EACH_OBJECT(CLEAR)
    while (written)
        Py_XDECREF(events[--written].what);
    PyMem_Free(events);
    return 0;
}

static void Clock_dealloc(Clock *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, Clock_dealloc)
    Clock_clear(self);
    empty(&self->tallies);
    Py_TYPE(self)->tp_free((PyObject *)self);
    Py_TRASHCAN_END
}

static PyMemberDef Clock_members[] = {
#define MEMBER(name) {#name, T_OBJECT, offsetof(Clock, name), 0, NULL},
    EACH_OBJECT(MEMBER)
    {"writes", T_BOOL, offsetof(Clock, writes), 0, NULL},
    {"kept", T_BOOL, offsetof(Clock, kept), 0, NULL},
    {"began", T_LONGLONG, offsetof(Clock, began), READONLY, NULL},
    {"mark", T_LONGLONG, offsetof(Clock, mark), READONLY, NULL},
    {NULL},
};

static PyMethodDef Clock_methods[] = {
    {"turn", (PyCFunction)Clock_turn, METH_VARARGS, NULL},
    {"note", (PyCFunction)Clock_note, METH_VARARGS, NULL},
    {"book", (PyCFunction)Clock_book, METH_NOARGS, NULL},
    {"skip", (PyCFunction)Clock_skip, METH_NOARGS, NULL},
    {"count", (PyCFunction)Clock_count, METH_O, NULL},
    {"tally", (PyCFunction)(void (*)(void))Clock_tally, METH_FASTCALL, NULL},
    {"spent", (PyCFunction)Clock_spent, METH_NOARGS, NULL},
    {NULL},
};

static PyGetSetDef Clock_getset[] = {
    {"at", (getter)Clock_get_at, (setter)Clock_set_at, NULL, NULL},
    {"wall_ns", (getter)Clock_wall_ns, NULL, NULL, NULL},
    {"counts", (getter)Clock_counts, NULL, NULL, NULL},
    {"tallies", (getter)Clock_tallies, NULL, NULL, NULL},
    {"events", (getter)Clock_events, NULL, NULL, NULL},
    {"is_full", (getter)Clock_is_full, NULL, NULL, NULL},
    {NULL},
};

PyTypeObject ClockType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Clock",
    .tp_doc = "Self times of one request; see keylag_otel.pure.",
    .tp_basicsize = sizeof(Clock),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = Clock_new,
    .tp_dealloc = (destructor)Clock_dealloc,
    .tp_setattro = set_only,
    .tp_traverse = (traverseproc)Clock_traverse,
    .tp_clear = (inquiry)Clock_clear,
    .tp_members = Clock_members,
    .tp_methods = Clock_methods,
    .tp_getset = Clock_getset,
};

/* Return the method of a request, or the one that stands for all that are not known:
 * a new reference, or NULL with an exception.
 */
static PyObject *method_of(PyObject *environ, PyObject *methods, PyObject *other)
{
    PyObject *given = NULL;
    if (PyDict_Check(environ)) /* as WSGI wants it */
        given = PyDict_GetItemWithError(environ, method_name);
    if (given == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(other);
    Py_INCREF(given);
    PyObject *known = PyDict_GetItemWithError(methods, given);
    Py_XINCREF(known);
    Py_DECREF(given);
    return known == NULL && !PyErr_Occurred() ? Py_NewRef(other) : known;
}

static PyObject *begun(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *methods, *other, *environ;
    unsigned int at;
    Py_ssize_t counts;
    if (!PyArg_ParseTuple(args, "O!OIO&O", &PyDict_Type, &methods, &other, &at, to_size,
                          &counts, &environ))
        return NULL;
    PyObject *method = method_of(environ, methods, other);
    if (method == NULL)
        return NULL;
    Clock *clock = new_clock(method, at, counts);
    Py_DECREF(method);
    if (clock != NULL)
        clock->environ = Py_NewRef(environ);
    return (PyObject *)clock;
}

static PyObject *running_clock(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Clock *clock = running();
    return clock == NULL ? Py_NewRef(Py_None) : (PyObject *)clock;
}

static int set_active(PyObject *clock)
{
    PyObject *token = PyContextVar_Set(active, clock);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

static PyObject *set_thread(PyObject *given, unsigned long thread, PyObject *clock)
{
    if (!Py_IS_TYPE(given, &ClockType)) {
        PyErr_SetString(PyExc_TypeError, "this is not a clock");
        return NULL;
    }
    ((Clock *)given)->thread = thread;
    if (set_active(clock) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *activate(PyObject *Py_UNUSED(module), PyObject *clock)
{
    return set_thread(clock, this_thread(), clock);
}

static PyObject *deactivate(PyObject *Py_UNUSED(module), PyObject *clock)
{
    return set_thread(clock, 0, Py_None);
}

static PyMethodDef functions[] = {
    {"activate", activate, METH_O, "See keylag_otel.pure."},
    {"deactivate", deactivate, METH_O, "See keylag_otel.pure."},
    {"begun", begun, METH_VARARGS, "See keylag_otel.pure."},
    {"running", running_clock, METH_NOARGS, "See keylag_otel.pure."},
    {NULL},
};

int add_clock(PyObject *module)
{
    if (intern(&method_name, "REQUEST_METHOD") < 0 ||
        PyModule_AddType(module, &ClockType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
