/* Exceptions of our own code, and those that wait while it runs. */
#include "faults.h"

PyObject *on_fault;

int forget(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return 0;
}

int unheard(PyObject *what)
{
    if (forget() < 0)
        return -1;
    PyObject *told = call_kept(on_fault, &what, 1);
    Py_XDECREF(told);
    return told == NULL ? forget() : 0;
}

PyObject *take_raised(void)
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

void raise_again(PyObject *raised)
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
