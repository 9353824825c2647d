/* What runs in each request, in C: keylag_otel.pure says what it does.
 * Both have the same names and pass the same tests.
 */
#include "module.h"
#include "watched.h"

#include <pthread.h>

PyObject *active, *reader, *on_fault;

int unheard(PyObject *what)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    PyObject *told = PyObject_CallOneArg(on_fault, what);
    Py_XDECREF(told);
    return told == NULL ? -1 : 0;
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
    PyObject *module = PyModule_Create(&definition);
    active = PyContextVar_New("keylag_clock", Py_None);
    on_fault = Py_NewRef((PyObject *)&PyBool_Type);
    if (module == NULL || active == NULL || pthread_atfork(NULL, NULL, forked) != 0 ||
        PyModule_AddObjectRef(module, "active", active) < 0 ||
        add_answer(module) < 0 || add_bodies(module) < 0 || add_clock(module) < 0 ||
        add_notes(module) < 0 || add_sums(module) < 0 || add_totals(module) < 0 ||
        add_watched(module) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
