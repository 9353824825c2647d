/* Python.h, with what Python 3.9 does not have yet. */
#ifndef KEYLAG_COMPAT_H
#define KEYLAG_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *new_reference(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}
#define Py_NewRef(object) new_reference((PyObject *)(object))
#define Py_XNewRef(object) new_reference((PyObject *)(object))

static inline int PyModule_AddObjectRef(PyObject *module, const char *name,
                                        PyObject *value)
{
    if (value == NULL) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_SystemError, "no value for %s", name);
        return -1;
    }
    Py_INCREF(value);
    if (PyModule_AddObject(module, name, value) == 0)
        return 0;
    Py_DECREF(value);
    return -1;
}
#endif

#endif
