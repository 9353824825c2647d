/* The Python type RequestTimer; documented in keylag_otel.pure.request_timer. */
#include "request_timer.h"
#include "module.h"

#include <structmember.h>

#define INITIAL_EVENT_CAPACITY 1024 /* events; doubled when full */

Bounds call_bounds;
__thread char thread_mark;
static PyObject *method_name;

long long read_time_source(void)
{
    PyObject *raised = fetch_exception();
    PyObject *moment = call_owned(time_source, NULL, 0);
    long long nanoseconds = moment == NULL ? 0 : PyLong_AsLongLong(moment);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        nanoseconds = 0;
    }
    Py_XDECREF(moment);
    restore_exception(raised);
    return nanoseconds;
}

void append_event(RequestTimer *self, long long moment, int cell, PyObject *what)
{
    if (self->event_count == self->event_capacity) {
        int event_capacity =
            self->event_capacity ? 2 * self->event_capacity : INITIAL_EVENT_CAPACITY;
        Event *grown =
            event_capacity > EVENT_LIMIT
                ? NULL
                : PyMem_Realloc(self->events, event_capacity * sizeof(Event));
        if (grown == NULL)
            return;
        self->events = grown;
        self->event_capacity = event_capacity;
    }
    self->events[self->event_count++] = (Event){moment, Py_XNewRef(what), cell};
}

static PyObject *event_tuple(const Event *event)
{
    if (event->cell == ANNOTATION)
        return Py_NewRef(event->what);
    if (event->cell == INCREMENT)
        return Py_BuildValue("(OL)", Py_None, event->moment);
    return Py_BuildValue("(LiO)", event->moment, event->cell, or_none(event->what));
}

static int append_event_to(PyObject *list, const Event *event)
{
    PyObject *tuple = event_tuple(event);
    int failed = tuple == NULL ? -1 : PyList_Append(list, tuple);
    Py_XDECREF(tuple);
    return failed;
}

/* Building the list may run Python code, which may append events. */
static PyObject *RequestTimer_events(RequestTimer *self, void *Py_UNUSED(closure))
{
    PyObject *list = PyList_New(0);
    for (int index = 0; list != NULL && index < self->event_count; index++) {
        Event event = self->events[index];
        Py_XINCREF(event.what);
        if (append_event_to(list, &event) < 0)
            Py_CLEAR(list);
        Py_XDECREF(event.what);
    }
    return list;
}

static PyObject *RequestTimer_event_limit_reached(RequestTimer *self,
                                                  void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->event_count >= EVENT_LIMIT);
}

int invalid_counter(long number)
{
    PyErr_Format(PyExc_ValueError, "counter id %ld is out of range", number);
    return -1;
}

int sum_overflow(void)
{
    PyErr_SetString(PyExc_OverflowError, "the sum exceeds 64 bits");
    return -1;
}

int add_to_dict(void *dict, long number, long long sum)
{
    PyObject *sums = dict;
    int failed = -1;
    PyObject *after = NULL, *key = PyLong_FromLong(number);
    PyObject *before = key == NULL ? NULL : PyDict_GetItemWithError(sums, key);
    long long previous = before == NULL ? 0 : PyLong_AsLongLong(before);
    if (!PyErr_Occurred() && __builtin_add_overflow(previous, sum, &sum))
        sum_overflow();
    if (!PyErr_Occurred() && (after = PyLong_FromLongLong(sum)) != NULL)
        failed = PyDict_SetItem(sums, key, after);
    Py_XDECREF(after);
    Py_XDECREF(key);
    return failed;
}

Slot *overflow_slot(CounterTable *slots, long number)
{
    if (slots->overflow == NULL)
        slots->overflow = PyMem_Calloc(1, sizeof(CounterTable));
    if (slots->overflow == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    return find_slot(slots->overflow, number);
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
        PyErr_Format(PyExc_ValueError, "%zd is not between 0 and %zd", number,
                     limit - 1);
        return 0;
    }
    *read = number;
    return 1;
}

int to_size(PyObject *given, void *size)
{
    return to_below(given, COUNT_LIMIT + 1, size);
}

int to_index(PyObject *given, void *index)
{
    return to_below(given, COUNT_LIMIT, index);
}

int set_undeletable(PyObject *self, PyObject *name, PyObject *value)
{
    if (value != NULL)
        return PyObject_GenericSetAttr(self, name, value);
    PyErr_Format(PyExc_AttributeError, "cannot delete %R of a %.100s", name,
                 Py_TYPE(self)->tp_name);
    return -1;
}

static RequestTimer *new_timer(PyObject *method, unsigned int current_cell,
                               Py_ssize_t counts)
{
    RequestTimer *self = (RequestTimer *)PyType_GenericAlloc(&RequestTimerType, 0);
    if (self == NULL)
        return NULL;
    self->method = Py_NewRef(method);
    self->count_size = (int)counts;
    self->current_cell = current_cell & (CELLS - 1);
    self->thread = this_thread();
    self->last_tick = self->started_at = now();
    return self;
}

/* The type has no __init__, so that a second one cannot reset a timer. */
static PyObject *RequestTimer_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                                  PyObject *kwargs)
{
    static char *names[] = {"method", "current_cell", "counts", NULL};
    PyObject *method;
    unsigned int current_cell;
    Py_ssize_t counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OIO&", names, &method,
                                     &current_cell, to_size, &counts))
        return NULL;
    return (PyObject *)new_timer(method, current_cell, counts);
}

static PyObject *RequestTimer_get_current_cell(RequestTimer *self,
                                               void *Py_UNUSED(closure))
{
    return PyLong_FromLong(self->current_cell);
}

static int RequestTimer_set_current_cell(RequestTimer *self, PyObject *given,
                                         void *Py_UNUSED(closure))
{
    unsigned long cell = PyLong_AsUnsignedLongMask(given);
    if (PyErr_Occurred())
        return -1;
    self->current_cell = cell & (CELLS - 1);
    return 0;
}

static PyObject *RequestTimer_switch(RequestTimer *self, PyObject *args)
{
    unsigned int cell;
    PyObject *call = NULL;
    if (!PyArg_ParseTuple(args, "I|O", &cell, &call))
        return NULL;
    return PyLong_FromLong(switch_cell(self, cell, call));
}

static PyObject *RequestTimer_annotate(RequestTimer *self, PyObject *args)
{
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "OO", &name, &value))
        return NULL;
    if (self->records_events)
        append_event(self, 0, ANNOTATION, args);
    Py_RETURN_NONE;
}

static PyObject *RequestTimer_discard_elapsed(RequestTimer *self,
                                              PyObject *Py_UNUSED(none))
{
    self->last_tick = now();
    Py_RETURN_NONE;
}

static PyObject *RequestTimer_accumulate(RequestTimer *self, PyObject *Py_UNUSED(none))
{
    accumulate(self);
    Py_RETURN_NONE;
}

static PyObject *RequestTimer_increment(RequestTimer *self, PyObject *const *args,
                                        Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "increment(counter_id, amount=1)");
        return NULL;
    }
    long number = to_long(args[0]);
    if (!PyErr_Occurred() && (unsigned long)number >= COUNTER_LIMIT)
        invalid_counter(number);
    long long sum = PyErr_Occurred() || count == 1 ? 1 : PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || increment(self, number, sum) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *RequestTimer_count(RequestTimer *self, PyObject *given)
{
    Py_ssize_t index = PyNumber_AsSsize_t(given, NULL);
    if (PyErr_Occurred())
        return NULL;
    if (index < 0 || index >= self->count_size) {
        PyErr_SetString(PyExc_IndexError, "count index out of range");
        return NULL;
    }
    self->counts[index]++;
    Py_RETURN_NONE;
}

int add_all_counters(const CounterTable *slots, AddCounter add, void *sums)
{
    for (; slots != NULL; slots = slots->overflow)
        for (const Slot *slot = slots->slots; slot < slots->slots + SLOT_COUNT; slot++)
            if (slot->id_plus_1 != 0 && add(sums, slot->id_plus_1 - 1, slot->sum) < 0)
                return -1;
    return 0;
}

void clear_table(CounterTable *slots)
{
    CounterTable *overflow = slots->overflow;
    memset(slots, 0, sizeof(CounterTable));
    while (overflow != NULL) {
        CounterTable *freed = overflow;
        overflow = freed->overflow;
        PyMem_Free(freed);
    }
}

PyObject *list_of_numbers(const long long *numbers, Py_ssize_t count)
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

PyObject *self_times_of(const long long *cells)
{
    PyObject *sums = PyDict_New();
    for (int cell = 0; sums != NULL && cell < CELLS; cell++)
        if (cells[cell] != 0 && add_to_dict(sums, cell, cells[cell]) < 0)
            Py_CLEAR(sums);
    return sums;
}

long long wall_time_of(const long long *cells)
{
    long long wall = 0;
    for (int cell = 0; cell < CELLS; cell++)
        wall = wrapping_add(wall, cells[cell]);
    return wall;
}

static PyObject *RequestTimer_self_times(RequestTimer *self, PyObject *Py_UNUSED(none))
{
    return self_times_of(self->cells);
}

static PyObject *RequestTimer_counters(RequestTimer *self, void *Py_UNUSED(closure))
{
    PyObject *sums = PyDict_New();
    if (sums != NULL && add_all_counters(&self->counters, add_to_dict, sums) < 0)
        Py_CLEAR(sums);
    return sums;
}

static int has_calls(const long long *times)
{
    for (int index = 1; index < 1 + COUNT_LIMIT + 1; index++)
        if (times[index] != 0)
            return 1;
    return 0;
}

static int add_times_to(PyObject *dict, long kind, const long long *times)
{
    PyObject *key = PyLong_FromLong(kind);
    PyObject *list = list_of_numbers(times, 1 + call_bounds.count + 1);
    int failed = key == NULL || list == NULL ? -1 : PyDict_SetItem(dict, key, list);
    Py_XDECREF(key);
    Py_XDECREF(list);
    return failed;
}

PyObject *dict_of_calls(const CallTimes *calls)
{
    PyObject *dict = PyDict_New();
    for (long kind = 0; dict != NULL && kind < COUNT_LIMIT; kind++)
        if (has_calls(calls[kind]) && add_times_to(dict, kind, calls[kind]) < 0)
            Py_CLEAR(dict);
    return dict;
}

void add_calls(CallTimes *sums, const CallTimes *calls)
{
    for (int kind = 0; kind < COUNT_LIMIT; kind++)
        if (has_calls(calls[kind]))
            for (int index = 0; index < 1 + COUNT_LIMIT + 1; index++)
                sums[kind][index] = wrapping_add(sums[kind][index], calls[kind][index]);
}

static PyObject *RequestTimer_calls(RequestTimer *self, void *Py_UNUSED(closure))
{
    return dict_of_calls(self->calls);
}

static PyObject *RequestTimer_counts(RequestTimer *self, void *Py_UNUSED(closure))
{
    return list_of_numbers(self->counts, self->count_size);
}

static PyObject *RequestTimer_wall_ns(RequestTimer *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(wall_time_of(self->cells));
}

#define EACH_OBJECT(of) \
    of(method) of(route) of(auth_method) of(missed_region) of(cache_layer) \
        of(last_layer) of(environ)

static int RequestTimer_traverse(RequestTimer *self, visitproc visit, void *arg)
{
    EACH_OBJECT(VISIT)
    for (int index = 0; index < self->event_count; index++)
        Py_VISIT(self->events[index].what);
    return 0;
}

static int RequestTimer_clear(RequestTimer *self)
{
    Event *events = self->events;
    int event_count = self->event_count;
    self->events = NULL;
    self->event_count = self->event_capacity = 0;
    EACH_OBJECT(CLEAR)
    while (event_count)
        Py_XDECREF(events[--event_count].what);
    PyMem_Free(events);
    return 0;
}

static void RequestTimer_dealloc(RequestTimer *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, RequestTimer_dealloc)
    RequestTimer_clear(self);
    clear_table(&self->counters);
    Py_TYPE(self)->tp_free((PyObject *)self);
    Py_TRASHCAN_END
}

static PyMemberDef RequestTimer_members[] = {
#define MEMBER(name) {#name, T_OBJECT, offsetof(RequestTimer, name), 0, NULL},
    EACH_OBJECT(MEMBER)
    {"records_events", T_BOOL,
                        offsetof(RequestTimer, records_events), 0, NULL},
    {"is_traced", T_BOOL, offsetof(RequestTimer, is_traced), 0, NULL},
    {"started_at", T_LONGLONG, offsetof(RequestTimer, started_at), READONLY, NULL},
    {"last_tick", T_LONGLONG, offsetof(RequestTimer, last_tick), READONLY, NULL},
    {NULL},
};

static PyMethodDef RequestTimer_methods[] = {
    {"switch", (PyCFunction)RequestTimer_switch, METH_VARARGS,
     SIGNATURE("switch($self, cell, call=None, /)", "request_timer")},
    {"annotate", (PyCFunction)RequestTimer_annotate, METH_VARARGS,
     SIGNATURE("annotate($self, name, value, /)", "request_timer")},
    {"accumulate", (PyCFunction)RequestTimer_accumulate, METH_NOARGS,
     SIGNATURE("accumulate($self, /)", "request_timer")},
    {"discard_elapsed", (PyCFunction)RequestTimer_discard_elapsed, METH_NOARGS,
     SIGNATURE("discard_elapsed($self, /)", "request_timer")},
    {"count", (PyCFunction)RequestTimer_count, METH_O,
     SIGNATURE("count($self, position, /)", "request_timer")},
    {"increment", (PyCFunction)(void (*)(void))RequestTimer_increment, METH_FASTCALL,
     SIGNATURE("increment($self, counter_id, amount=1, /)", "request_timer")},
    {"self_times", (PyCFunction)RequestTimer_self_times, METH_NOARGS,
     SIGNATURE("self_times($self, /)", "request_timer")},
    {NULL},
};

static PyGetSetDef RequestTimer_getset[] = {
    {"current_cell", (getter)RequestTimer_get_current_cell,
     (setter)RequestTimer_set_current_cell, NULL, NULL},
    {"wall_ns", (getter)RequestTimer_wall_ns, NULL, NULL, NULL},
    {"counts", (getter)RequestTimer_counts, NULL, NULL, NULL},
    {"calls", (getter)RequestTimer_calls, NULL, NULL, NULL},
    {"counters", (getter)RequestTimer_counters, NULL, NULL, NULL},
    {"events", (getter)RequestTimer_events, NULL, NULL, NULL},
    {"event_limit_reached", (getter)RequestTimer_event_limit_reached, NULL, NULL, NULL},
    {NULL},
};

PyTypeObject RequestTimerType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._native.RequestTimer",
    .tp_doc = SIGNATURE("RequestTimer(method, current_cell, counts)", "request_timer"),
    .tp_basicsize = sizeof(RequestTimer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = RequestTimer_new,
    .tp_dealloc = (destructor)RequestTimer_dealloc,
    .tp_setattro = set_undeletable,
    .tp_traverse = (traverseproc)RequestTimer_traverse,
    .tp_clear = (inquiry)RequestTimer_clear,
    .tp_members = RequestTimer_members,
    .tp_methods = RequestTimer_methods,
    .tp_getset = RequestTimer_getset,
};

/* Return the label of the request method, `other` for unknown methods: a new
 * reference, or NULL with an exception on failure. */
static PyObject *method_label(PyObject *environ, PyObject *methods, PyObject *other)
{
    PyObject *given = NULL;
    if (PyDict_Check(environ)) /* WSGI requires a dict */
        given = PyDict_GetItemWithError(environ, method_name);
    if (given == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(other);
    Py_INCREF(given);
    PyObject *label = PyDict_GetItemWithError(methods, given);
    Py_XINCREF(label);
    Py_DECREF(given);
    return label == NULL && !PyErr_Occurred() ? Py_NewRef(other) : label;
}

static PyObject *start_timer(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *methods, *other, *environ;
    unsigned int current_cell;
    Py_ssize_t counts;
    if (!PyArg_ParseTuple(args, "O!OIO&O", &PyDict_Type, &methods, &other,
                          &current_cell, to_size, &counts, &environ))
        return NULL;
    PyObject *method = method_label(environ, methods, other);
    if (method == NULL)
        return NULL;
    RequestTimer *timer = new_timer(method, current_cell, counts);
    Py_DECREF(method);
    if (timer != NULL)
        timer->environ = Py_NewRef(environ);
    return (PyObject *)timer;
}

static PyObject *get_current_timer(PyObject *Py_UNUSED(module),
                                   PyObject *Py_UNUSED(none))
{
    RequestTimer *timer = current_timer();
    return timer == NULL ? Py_NewRef(Py_None) : (PyObject *)timer;
}

static int set_timer_var(PyObject *timer)
{
    PyObject *token = PyContextVar_Set(timer_var, timer);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

static PyObject *set_thread(PyObject *given, unsigned long thread, PyObject *timer)
{
    if (!Py_IS_TYPE(given, &RequestTimerType)) {
        PyErr_SetString(PyExc_TypeError, "expected a RequestTimer");
        return NULL;
    }
    ((RequestTimer *)given)->thread = thread;
    if (set_timer_var(timer) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *activate(PyObject *Py_UNUSED(module), PyObject *timer)
{
    return set_thread(timer, this_thread(), timer);
}

static PyObject *deactivate(PyObject *Py_UNUSED(module), PyObject *timer)
{
    return set_thread(timer, 0, Py_None);
}

static PyMethodDef functions[] = {
    {"activate", activate, METH_O,
     SIGNATURE("activate(timer, /)", "request_timer")},
    {"deactivate", deactivate, METH_O,
     SIGNATURE("deactivate(timer, /)", "request_timer")},
    {"start_timer", start_timer, METH_VARARGS,
     SIGNATURE("start_timer(methods, other, current_cell, counts, environ, /)",
               "request_timer")},
    {"current_timer", get_current_timer, METH_NOARGS,
     SIGNATURE("current_timer()", "request_timer")},
    {NULL},
};

static int read_call_bounds(void)
{
    PyObject *bounds = NULL;
    int failed = import_name(&bounds, "keylag_otel.model", "CALL_BOUNDS");
    if (failed == 0)
        failed = read_bounds(&call_bounds, bounds);
    Py_XDECREF(bounds);
    return failed;
}

int add_request_timer(PyObject *module)
{
    if (intern(&method_name, "REQUEST_METHOD") < 0 || read_call_bounds() < 0 ||
        PyModule_AddType(module, &RequestTimerType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
