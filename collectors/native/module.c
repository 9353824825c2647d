/* The hot path in C; documented in keylag_otel.pure, which is the same in Python.
 * Both have the same names and pass the same tests.
 *
 * State is global to the process and belongs to its main interpreter.
 */
#include "module.h"
#include "wrapper.h"

#ifdef Py_GIL_DISABLED
#error "This code requires the GIL; setup.py skips it on free-threaded builds."
#endif

PyObject *timer_var, *time_source;

static PyObject *set_time_source(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_XSETREF(time_source, given == Py_None ? NULL : Py_NewRef(given));
    Py_RETURN_NONE;
}

static PyObject *set_fault_handler(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_XSETREF(fault_handler, Py_NewRef(given));
    Py_RETURN_NONE;
}

static PyObject *report_fault(PyObject *Py_UNUSED(module), PyObject *call)
{
    PyObject *result = call_owned(fault_handler, &call, 1);
    if (result == NULL && suppress_exception() < 0)
        return NULL;
    Py_XDECREF(result);
    Py_RETURN_NONE;
}

/* Counting forks is cheaper than a getpid() system call in each request. */
static long fork_count;

static void count_fork(void)
{
    fork_count++;
}

static PyObject *process_generation(PyObject *Py_UNUSED(module),
                                    PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(fork_count);
}

static PyMethodDef functions[] = {
    {"set_time_source", set_time_source, METH_O,
     SIGNATURE("set_time_source(now, /)", "request_timer")},
    {"process_generation", process_generation, METH_NOARGS,
     SIGNATURE("process_generation()", "request_timer")},
    {"set_fault_handler", set_fault_handler, METH_O,
     SIGNATURE("set_fault_handler(handler, /)", "wrapper")},
    {"report_fault", report_fault, METH_O,
     SIGNATURE("report_fault(call, /)", "request_timer")},
    {NULL},
};

int intern(PyObject **string, const char *text)
{
    if (*string == NULL)
        *string = PyUnicode_InternFromString(text);
    return *string == NULL ? -1 : 0;
}

int import_name(PyObject **object, const char *module, const char *name)
{
    PyObject *imported = *object != NULL ? NULL : PyImport_ImportModule(module);
    if (imported != NULL)
        *object = PyObject_GetAttrString(imported, name);
    Py_XDECREF(imported);
    return *object == NULL ? -1 : 0;
}

static int interpreter_finalized; /* and our objects with it */

static void mark_finalized(void)
{
    interpreter_finalized = 1;
}

static int require_main_interpreter(void)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        PyErr_SetString(PyExc_ImportError,
                        "keylag_otel._native supports only the main interpreter of a "
                        "process; this is a subinterpreter");
    else if (interpreter_finalized)
        PyErr_SetString(PyExc_ImportError,
                        "keylag_otel._native supports only the first interpreter of a "
                        "process; this one started after that was finalized");
    return PyErr_Occurred() ? -1 : 0;
}

/* Initialize the state of the process, however often the module is imported. */
static int initialize_process(void)
{
    if (timer_var != NULL)
        return 0;
    if (pthread_atfork(NULL, NULL, count_fork) != 0 || Py_AtExit(mark_finalized) != 0) {
        PyErr_SetString(
            PyExc_ImportError,
            "keylag_otel._native cannot register its fork and exit handlers");
        return -1;
    }
    fault_handler = Py_NewRef((PyObject *)&PyBool_Type);
    timer_var = PyContextVar_New("keylag_request_timer", Py_None);
    return timer_var == NULL ? -1 : 0;
}

static int populate(PyObject *module)
{
    static int (*const parts[])(PyObject *) = {
        add_context_managers, add_request_timer, add_hooks,
        add_aggregator,       add_aggregate,     add_wrapper,
    };
    if (require_main_interpreter() < 0 || initialize_process() < 0)
        return -1;
    for (size_t index = 0; index < sizeof(parts) / sizeof(parts[0]); index++)
        if (parts[index](module) < 0)
            return -1;
    return PyModule_AddObjectRef(module, "timer_var", timer_var);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)populate},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "keylag_otel._native",
    .m_doc = "keylag_otel.pure in C.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
