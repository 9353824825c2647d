/* A request's way out: keylag_otel.pure.answer says what it does. */
#include "clock.h"
#include "faults.h"
#include "module.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *start_response, *ledger, *route, *timing, *traced, *body, *parts;
    Clock *clock;
    int status;
    char ended;
} Answer;

static PyTypeObject AnswerType;
static PyObject *add_name;

/* Read the status of "200 OK"; -1 with an exception if there is none. */
static int status_of(PyObject *line)
{
    PyObject *digits = PySequence_GetSlice(line, 0, 3);
    PyObject *number = digits == NULL ? NULL : PyNumber_Long(digits);
    long status = number == NULL ? -1 : PyLong_AsLong(number);
    Py_XDECREF(number);
    Py_XDECREF(digits);
    if (PyErr_Occurred() || (status >= 100 && status <= 999))
        return (int)status;
    PyErr_SetString(PyExc_ValueError, "a status is from 100 to 999");
    return -1;
}

/* Return the headers with the breakdown. */
static PyObject *timed_headers(Answer *self, PyObject *headers)
{
    PyObject *told[] = {(PyObject *)self->clock, headers};
    book(self->clock);
    return call_kept(self->timing, told, 2);
}

/* Start the answer with other headers than the application's. */
static PyObject *start_with(Answer *self, PyObject *const *args, size_t flags,
                            PyObject *names, PyObject *headers)
{
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject **passed = PyMem_New(PyObject *, count + named);
    PyObject *write = NULL;
    if (passed == NULL)
        return PyErr_NoMemory();
    memcpy(passed, args, (count + named) * sizeof(PyObject *));
    passed[1] = headers;
    write = PyObject_Vectorcall(self->start_response, passed, count, names);
    PyMem_Free(passed);
    return write;
}

static PyObject *start(Answer *self, PyObject *const *args, size_t flags,
                       PyObject *names)
{
    PyObject *timed = NULL;
    int status = status_of(args[0]);
    if (!PyErr_Occurred())
        self->status = status;
    if (!PyErr_Occurred() && is_set(self->timing))
        timed = timed_headers(self, args[1]);
    if (PyErr_Occurred() && unheard((PyObject *)&AnswerType) < 0)
        return NULL;
    if (timed == NULL)
        return PyObject_Vectorcall(self->start_response, args, flags, names);
    PyObject *write = start_with(self, args, flags, names, timed);
    Py_DECREF(timed);
    return write;
}

static PyObject *Answer_start(PyObject *callable, PyObject *const *args, size_t flags,
                              PyObject *names)
{
    if (PyVectorcall_NARGS(flags) < 2) {
        PyErr_SetString(PyExc_TypeError, "start_response(status, headers, exc_info=None)");
        return NULL;
    }
    if (Py_EnterRecursiveCall(" while starting an answer") != 0)
        return NULL;
    PyObject *write = start((Answer *)callable, args, flags, names);
    Py_LeaveRecursiveCall();
    return write;
}

static PyObject *Answer_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                            PyObject *kwargs)
{
    static char *names[] = {"clock", "start_response", "ledger", "route", "traced", NULL};
    PyObject *clock, *start_response, *ledger, *route, *traced;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOOO", names, &ClockType, &clock,
                                     &start_response, &ledger, &route, &traced))
        return NULL;
    Answer *self = (Answer *)AnswerType.tp_alloc(&AnswerType, 0);
    if (self == NULL)
        return NULL;
    self->clock = (Clock *)Py_NewRef(clock);
    self->start_response = Py_NewRef(start_response);
    self->ledger = Py_NewRef(ledger);
    self->route = Py_NewRef(route);
    self->traced = Py_NewRef(traced);
    self->vectorcall = Answer_start;
    self->status = 500; /* what a server answers when nothing was started */
    return (PyObject *)self;
}

/* Know the route of a request that Flask has not matched. */
SELDOM static int find_route(Answer *self)
{
    PyObject *environ = Py_NewRef(or_none(self->clock->environ));
    PyObject *route = PyObject_CallOneArg(self->route, environ);
    Py_DECREF(environ);
    if (route == NULL)
        return -1;
    Py_XSETREF(self->clock->route, route);
    return 0;
}

static PyObject *end_request(Answer *self)
{
    PyObject *done = NULL;
    book(self->clock);
    if (!is_set(self->clock->route) && find_route(self) < 0)
        return NULL;
    PyObject *status = PyLong_FromLong(self->status);
    PyObject *told[] = {self->ledger, (PyObject *)self->clock, status};
    if (status != NULL && self->clock->writes)
        done = call_kept(or_none(self->traced), told + 1, 2);
    else if (status != NULL)
        done = PyObject_VectorcallMethod(add_name, told, 3, NULL);
    Py_XDECREF(status);
    return done;
}

/* An exception of the application's waits; -1 if another one is to be raised instead. */
static int end_once(Answer *self)
{
    if (self->ended)
        return 0;
    self->ended = 1;
    PyObject *raised = take_raised();
    int failed = heard(end_request(self), (PyObject *)&AnswerType);
    raise_again(raised);
    return failed;
}

static int set_active(PyObject *clock)
{
    PyObject *token = PyContextVar_Set(active, clock);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

static int activate(Clock *clock)
{
    clock->thread = this_thread();
    return set_active((PyObject *)clock);
}

/* What was raised meanwhile stays raised. */
static void deactivate(Clock *clock)
{
    PyObject *raised = take_raised();
    clock->thread = 0;
    if (set_active(Py_None) < 0)
        PyErr_Clear();
    raise_again(raised);
}

/* Do a step of the answer's making, and book its time whatever comes of it. */
static PyObject *measured(Answer *self, PyObject *(*step)(Answer *))
{
    PyObject *answer = NULL;
    self->clock->mark = now();
    if (activate(self->clock) < 0)
        return NULL;
    if (Py_EnterRecursiveCall(" while making an answer") == 0) {
        answer = step(self);
        Py_LeaveRecursiveCall();
    }
    deactivate(self->clock);
    book(self->clock);
    return answer;
}

static PyObject *Answer_serve(Answer *self, PyObject *application)
{
    if (activate(self->clock) < 0)
        return NULL;
    PyObject *told[] = {Py_NewRef(or_none(self->clock->environ)), (PyObject *)self};
    PyObject *body = PyObject_Vectorcall(application, told, 2, NULL);
    Py_DECREF(told[0]);
    deactivate(self->clock);
    if (body == NULL || PyList_Check(body) || PyTuple_Check(body)) {
        if (end_once(self) < 0)
            Py_CLEAR(body);
        return body;
    }
    book(self->clock);
    Py_XSETREF(self->body, body);
    return Py_NewRef(self);
}

/* Start with the body, unless that has asked for its own parts meanwhile. */
static int start_parts(Answer *self)
{
    if (self->body == NULL)
        return 0;
    PyObject *body = Py_NewRef(self->body), *parts = PyObject_GetIter(body);
    Py_DECREF(body);
    if (parts == NULL)
        return -1;
    Py_XSETREF(self->parts, parts);
    return 0;
}

static PyObject *next_part(Answer *self)
{
    if (self->parts == NULL && start_parts(self) < 0)
        return NULL;
    PyObject *parts = Py_XNewRef(self->parts);
    PyObject *part = parts == NULL ? NULL : PyIter_Next(parts);
    Py_XDECREF(parts);
    return part;
}

static PyObject *call_close(PyObject *body)
{
    PyObject *close = PyObject_GetAttrString(body, "close");
    if (close == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *closed = close == NULL ? NULL : PyObject_CallNoArgs(close);
    Py_XDECREF(close);
    return closed;
}

static PyObject *close_body(Answer *self)
{
    if (self->body == NULL)
        Py_RETURN_NONE;
    PyObject *body = Py_NewRef(self->body), *closed = call_close(body);
    Py_DECREF(body);
    Py_XSETREF(closed, closed == NULL ? NULL : Py_NewRef(Py_None));
    return closed;
}

static PyObject *Answer_next(Answer *self)
{
    return measured(self, next_part);
}

static PyObject *Answer_close(Answer *self, PyObject *Py_UNUSED(none))
{
    PyObject *closed = measured(self, close_body);
    if (end_once(self) < 0)
        Py_CLEAR(closed);
    return closed;
}

#define EACH_OBJECT(of) \
    of(start_response) of(ledger) of(route) of(timing) of(traced) of(body) of(parts) \
    of(clock)
COLLECTED(Answer, EACH_OBJECT, (void)0)

/* The rest is there for as long as the answer is. */
static int Answer_clear(Answer *self)
{
    Py_CLEAR(self->timing);
    Py_CLEAR(self->traced);
    Py_CLEAR(self->body);
    Py_CLEAR(self->parts);
    return 0;
}

static PyMemberDef Answer_members[] = {
    {"timing", T_OBJECT, offsetof(Answer, timing), 0, NULL},
    {"traced", T_OBJECT, offsetof(Answer, traced), 0, NULL},
    {NULL},
};

static PyMethodDef Answer_methods[] = {
    {"close", (PyCFunction)Answer_close, METH_NOARGS, NULL},
    {"serve", (PyCFunction)Answer_serve, METH_O, NULL},
    {NULL},
};

static PyTypeObject AnswerType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._watch.Answer",
    .tp_doc = "A request's way out; see keylag_otel.pure.answer.",
    .tp_basicsize = sizeof(Answer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = Answer_new,
    .tp_dealloc = (destructor)Answer_dealloc,
    .tp_setattro = set_only,
    .tp_traverse = (traverseproc)Answer_traverse,
    .tp_clear = (inquiry)Answer_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Answer, vectorcall),
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)Answer_next,
    .tp_methods = Answer_methods,
    .tp_members = Answer_members,
};

int add_answer(PyObject *module)
{
    return intern(&add_name, "add") < 0 ? -1 : PyModule_AddType(module, &AnswerType);
}
