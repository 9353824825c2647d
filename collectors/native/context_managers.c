/* Wrappers of calls that return context managers; documented in
 * keylag_otel.pure.context_managers. */
#include "module.h"
#include "wrapper.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD PyObject *context, *args;
    TimedWrapper *wrapper;
    RequestTimer *timer; /* set while the body runs */
    int outside;
} TimedContext;

static PyTypeObject TimedContextType;
static PyObject *enter_name, *exit_name;

static PyObject *new_context(TimedWrapper *wrapper, PyObject *context,
                             PyObject *const *args, Py_ssize_t count)
{
    TimedContext *self =
        (TimedContext *)TimedContextType.tp_alloc(&TimedContextType, 0);
    if (self == NULL)
        return NULL;
    self->context = Py_NewRef(context);
    self->wrapper = (TimedWrapper *)Py_NewRef(wrapper);
    self->args = tuple_of(args, wrapper->before == Py_None ? 0 : count);
    if (self->args == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *wrap_returned_context(PyObject *callable, PyObject *const *args,
                                       size_t flags, PyObject *names)
{
    TimedWrapper *self = (TimedWrapper *)callable;
    PyObject *context = call_original(self, args, flags, names);
    RequestTimer *timer = context == NULL ? NULL : current_timer();
    if (timer == NULL)
        return context;
    Py_DECREF(timer);
    PyObject *timed = new_context(self, context, args, PyVectorcall_NARGS(flags));
    Py_DECREF(context);
    return timed;
}

static PyObject *TimedContext_enter(TimedContext *self, PyObject *Py_UNUSED(none))
{
    RequestTimer *timer = current_timer();
    if (timer == NULL)
        return PyObject_CallMethodNoArgs(self->context, enter_name);
    int inside = (timer->current_cell & self->wrapper->mask) | self->wrapper->bits;
    self->outside = switch_cell(timer, inside, self->wrapper->call);
    PyObject *entered = PyObject_CallMethodNoArgs(self->context, enter_name);
    if (entered == NULL)
        switch_cell(timer, self->outside, NULL);
    else
        Py_XSETREF(self->timer, (RequestTimer *)Py_NewRef(timer));
    Py_DECREF(timer);
    return entered;
}

/* Preserve the exception of the body; -1 if a hook raises one that replaces it. */
static int exit_context(TimedContext *self, RequestTimer *entered)
{
    TimedWrapper *wrapper = self->wrapper;
    PyObject *raised = fetch_exception();
    RequestTimer *timer = current_timer();
    int failed = 0;
    if (timer == entered) { /* an abandoned body may exit after its request */
        switch_cell(timer, self->outside, NULL);
        if (wrapper->before != Py_None)
            failed = run_before(wrapper, timer, &PyTuple_GET_ITEM(self->args, 0),
                                PyTuple_GET_SIZE(self->args), NULL);
    }
    Py_XDECREF(timer);
    restore_exception(raised);
    return failed;
}

static PyObject *TimedContext_exit(TimedContext *self, PyObject *const *args,
                                   Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "__exit__(type, value, traceback)");
        return NULL;
    }
    PyObject *exit_args[] = {self->context, args[0], args[1], args[2]};
    RequestTimer *entered = self->timer;
    self->timer = NULL;
    PyObject *result = PyObject_VectorcallMethod(exit_name, exit_args, 4, NULL);
    if (entered != NULL && exit_context(self, entered) < 0)
        Py_CLEAR(result);
    Py_XDECREF(entered);
    return result;
}

#define EACH_OBJECT(of) of(context) of(args) of(wrapper) of(timer)
GC_METHODS(TimedContext, EACH_OBJECT, (void)0)

static PyMethodDef TimedContext_methods[] = {
    {"__enter__", (PyCFunction)TimedContext_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))TimedContext_exit, METH_FASTCALL, NULL},
    {NULL},
};

static PyTypeObject TimedContextType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "keylag_otel._native.TimedContext",
    .tp_basicsize = sizeof(TimedContext),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = (destructor)TimedContext_dealloc,
    .tp_traverse = (traverseproc)TimedContext_traverse,
    .tp_methods = TimedContext_methods,
};

static PyObject *wrap_context_manager(PyObject *Py_UNUSED(module), PyObject *args,
                                      PyObject *kwargs)
{
    static char *names[] = {"call", "mask", "bits", "on_exit", NULL};
    PyObject *call, *on_exit = Py_None;
    unsigned int mask, bits;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OII|O", names, &call, &mask, &bits,
                                     &on_exit))
        return NULL;
    return new_wrapper(wrap_returned_context, call, mask, bits, on_exit, Py_None,
                       Py_None, NO_KINDS);
}

static PyMethodDef functions[] = {
    {"wrap_context_manager", (PyCFunction)(void (*)(void))wrap_context_manager,
     METH_VARARGS | METH_KEYWORDS,
     SIGNATURE("wrap_context_manager(call, mask, bits, on_exit=None)",
               "context_managers")},
    {NULL},
};

int add_context_managers(PyObject *module)
{
    if (intern(&enter_name, "__enter__") < 0 || intern(&exit_name, "__exit__") < 0 ||
        PyType_Ready(&TimedContextType) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
