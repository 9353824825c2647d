/* A clock as Python sees it: keylag_otel.pure says what it does. */
#include "clock.h"
#include "module.h"

#include <structmember.h>

#define FIRST_ROOM 1024 /* events; twice as many when they are full */

static PyObject *method_name;

long long read_time(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *moment = PyObject_CallNoArgs(reader);
    long long nanoseconds = moment == NULL ? 0 : PyLong_AsLongLong(moment);
    Py_XDECREF(moment);
    PyErr_Restore(type, value, traceback);
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

static PyObject *Clock_events(Clock *self, void *Py_UNUSED(closure))
{
    PyObject *list = PyList_New(self->written);
    for (int index = 0; list != NULL && index < self->written; index++) {
        PyObject *event = as_tuple(&self->events[index]);
        if (event == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, index, event);
    }
    return list;
}

static PyObject *Clock_is_full(Clock *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->written >= EVENTS);
}

int add_in(void *into, long number, long long sum)
{
    PyObject *sums = into;
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

int add_beyond(Clock *self, long number, long long sum)
{
    if (self->beyond == NULL && (self->beyond = PyDict_New()) == NULL)
        return -1;
    return add_in(self->beyond, number, sum);
}

static int set_up(Clock *self, PyObject *method, int at, int counts)
{
    if (counts < 0 || counts > MOST) {
        PyErr_Format(PyExc_ValueError, "at most %d counts", MOST);
        return -1;
    }
    Py_XSETREF(self->method, Py_NewRef(method));
    self->counted = counts;
    self->at = at & (CELLS - 1);
    self->mark = self->began = now();
    return 0;
}

static int Clock_init(Clock *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"method", "at", "counts", NULL};
    PyObject *method;
    int at, counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oii", names, &method, &at, &counts))
        return -1;
    return set_up(self, method, at, counts);
}

static PyObject *Clock_turn(Clock *self, PyObject *args)
{
    int cell;
    PyObject *call = NULL;
    if (!PyArg_ParseTuple(args, "i|O", &cell, &call))
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
    long long sum = count == 2 ? PyLong_AsLongLong(args[1]) : 1;
    long number = PyErr_Occurred() ? -1 : PyLong_AsLong(args[0]);
    if (PyErr_Occurred() || tally(self, number, sum) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *Clock_count(Clock *self, PyObject *given)
{
    Py_ssize_t index = PyLong_AsSsize_t(given);
    if (PyErr_Occurred())
        return NULL;
    if (index < 0 || index >= self->counted) {
        PyErr_SetString(PyExc_IndexError, "no such count");
        return NULL;
    }
    self->counts[index]++;
    Py_RETURN_NONE;
}

int add_tallies_to(const Clock *self, Adding add, void *sums)
{
    PyObject *number, *sum;
    Py_ssize_t position = 0;
    for (const Slot *slot = self->slots; slot < self->slots + SLOTS; slot++)
        if (slot->next != 0 && add(sums, slot->next - 1, slot->sum) < 0)
            return -1;
    while (self->beyond != NULL && PyDict_Next(self->beyond, &position, &number, &sum))
        if (add(sums, PyLong_AsLong(number), PyLong_AsLongLong(sum)) < 0)
            return -1;
    return 0;
}

PyObject *list_of(const long long *numbers, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t index = 0; list != NULL && index < count; index++)
        PyList_SET_ITEM(list, index, PyLong_FromLongLong(numbers[index]));
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
        wall += cells[cell];
    return wall;
}

static PyObject *Clock_spent(Clock *self, PyObject *Py_UNUSED(none))
{
    return spent_of(self->cells);
}

static PyObject *Clock_tallies(Clock *self, void *Py_UNUSED(closure))
{
    PyObject *sums = PyDict_New();
    if (sums != NULL && add_tallies_to(self, add_in, sums) < 0)
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
    of(method) of(route) of(auth_method) of(missed) of(layer) of(environ) of(beyond)

static int Clock_traverse(Clock *self, visitproc visit, void *arg)
{
    EACH_OBJECT(VISIT)
    for (int index = 0; index < self->written; index++)
        Py_VISIT(self->events[index].what);
    return 0;
}

static int Clock_clear(Clock *self)
{
    EACH_OBJECT(CLEAR)
    while (self->written)
        Py_XDECREF(self->events[--self->written].what);
    PyMem_Free(self->events);
    self->events = NULL;
    self->room = 0;
    return 0;
}

static PyMemberDef Clock_members[] = {
#define MEMBER(name) {#name, T_OBJECT, offsetof(Clock, name), 0, NULL},
    EACH_OBJECT(MEMBER)
    {"at", T_INT, offsetof(Clock, at), 0, NULL},
    {"writes", T_BOOL, offsetof(Clock, writes), 0, NULL},
    {"kept", T_BOOL, offsetof(Clock, kept), 0, NULL},
    {"began", T_LONGLONG, offsetof(Clock, began), READONLY, NULL},
    {"mark", T_LONGLONG, offsetof(Clock, mark), 0, NULL},
    {NULL},
};

static PyMethodDef Clock_methods[] = {
    {"turn", (PyCFunction)Clock_turn, METH_VARARGS, NULL},
    {"note", (PyCFunction)Clock_note, METH_VARARGS, NULL},
    {"book", (PyCFunction)Clock_book, METH_NOARGS, NULL},
    {"count", (PyCFunction)Clock_count, METH_O, NULL},
    {"tally", (PyCFunction)(void (*)(void))Clock_tally, METH_FASTCALL, NULL},
    {"spent", (PyCFunction)Clock_spent, METH_NOARGS, NULL},
    {NULL},
};

static PyGetSetDef Clock_getset[] = {
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
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Clock_init,
    .tp_dealloc = dealloc,
    .tp_traverse = (traverseproc)Clock_traverse,
    .tp_clear = (inquiry)Clock_clear,
    .tp_members = Clock_members,
    .tp_methods = Clock_methods,
    .tp_getset = Clock_getset,
};

/* Return the method of a request, or the one that stands for all that are not known:
 * a borrowed reference, or NULL with an exception.
 */
static PyObject *method_of(PyObject *environ, PyObject *methods, PyObject *other)
{
    PyObject *given = NULL;
    if (PyDict_Check(environ)) /* as WSGI wants it */
        given = PyDict_GetItemWithError(environ, method_name);
    PyObject *known = given == NULL ? NULL : PyDict_GetItemWithError(methods, given);
    return known == NULL && !PyErr_Occurred() ? other : known;
}

static PyObject *begun(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *methods, *other, *environ;
    int at, counts;
    if (!PyArg_ParseTuple(args, "O!OiiO", &PyDict_Type, &methods, &other, &at, &counts,
                          &environ))
        return NULL;
    PyObject *method = method_of(environ, methods, other);
    Clock *clock = method == NULL ? NULL : (Clock *)PyType_GenericAlloc(&ClockType, 0);
    if (clock != NULL && set_up(clock, method, at, counts) < 0)
        Py_CLEAR(clock);
    if (clock != NULL)
        clock->environ = Py_NewRef(environ);
    return (PyObject *)clock;
}

static PyMethodDef functions[] = {
    {"begun", begun, METH_VARARGS, "See keylag_otel.pure."},
    {NULL},
};

int add_clock(PyObject *module)
{
    method_name = PyUnicode_InternFromString("REQUEST_METHOD");
    if (method_name == NULL || PyModule_AddType(module, &ClockType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
