/* What runs in each request, in C: keylag_otel.pure says what it does.
 * Both have the same names and pass the same tests.
 *
 * There is one of all this in a process, for its main interpreter.
 */
#include "module.h"
#include "watched.h"

#ifdef Py_GIL_DISABLED
#error "This code counts on the GIL; setup.py leaves it out of Pythons without one."
#endif

PyObject *active, *reader;

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

static PyObject *report_fault(PyObject *Py_UNUSED(module), PyObject *what)
{
    PyObject *told = call_kept(on_fault, &what, 1);
    if (told == NULL && forget() < 0)
        return NULL;
    Py_XDECREF(told);
    Py_RETURN_NONE;
}

/* To ask the system for the number each time would take longer than all else here. */
static long forks;

static void forked(void)
{
    forks++;
}

static PyObject *process_number(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(forks);
}

static PyMethodDef functions[] = {
    {"read_with", read_with, METH_O, "Read the time, in nanoseconds, by this; or None."},
    {"process_number", process_number, METH_NOARGS, "See keylag_otel.pure.clock."},
    {"tell_faults", tell_faults, METH_O, "Call this with a call that a note failed on."},
    {"report_fault", report_fault, METH_O, "See keylag_otel.pure."},
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

static int has_ended; /* Python, once, in this process; our objects went with it */

static void ended(void)
{
    has_ended = 1;
}

static int refuse_others(void)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        PyErr_SetString(PyExc_ImportError,
                        "keylag_otel._watch runs in a process's main interpreter "
                        "only, and this is another one");
    else if (has_ended)
        PyErr_SetString(PyExc_ImportError,
                        "keylag_otel._watch runs in a process's first Python only, "
                        "and this one was started when that had ended");
    return PyErr_Occurred() ? -1 : 0;
}

/* Do what is done once in a process, however often the module is made. */
static int set_up_once(void)
{
    if (active != NULL)
        return 0;
    if (pthread_atfork(NULL, NULL, forked) != 0 || Py_AtExit(ended) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "keylag_otel._watch cannot be told of forks and of the end");
        return -1;
    }
    on_fault = Py_NewRef((PyObject *)&PyBool_Type);
    active = PyContextVar_New("keylag_clock", Py_None);
    return active == NULL ? -1 : 0;
}

static int fill(PyObject *module)
{
    static int (*const parts[])(PyObject *) = {
        add_bodies, add_clock, add_notes, add_sums, add_totals, add_watched,
    };
    if (refuse_others() < 0 || set_up_once() < 0)
        return -1;
    for (size_t index = 0; index < sizeof(parts) / sizeof(parts[0]); index++)
        if (parts[index](module) < 0)
            return -1;
    return PyModule_AddObjectRef(module, "active", active);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)fill},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "keylag_otel._watch",
    .m_doc = "keylag_otel.pure in C.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__watch(void)
{
    return PyModuleDef_Init(&definition);
}
