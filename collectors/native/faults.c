/* Exceptions raised by our own code, and pending ones of the host. */
#include "faults.h"

PyObject *fault_handler;

int suppress_exception(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return 0;
}

int report_and_suppress(PyObject *call)
{
    if (suppress_exception() < 0)
        return -1;
    PyObject *result = call_owned(fault_handler, &call, 1);
    Py_XDECREF(result);
    return result == NULL ? suppress_exception() : 0;
}

PyObject *fetch_exception(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL)
        return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(traceback);
    Py_DECREF(type);
    return value;
#endif
}

void restore_exception(PyObject *raised)
{
    if (raised != NULL && !PyErr_Occurred()) {
#if PY_VERSION_HEX >= 0x030C0000
        PyErr_SetRaisedException(raised);
        return;
#else
        PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(raised)), Py_NewRef(raised),
                      PyException_GetTraceback(raised));
#endif
    }
    Py_XDECREF(raised);
}
