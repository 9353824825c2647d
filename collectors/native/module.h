/* The parts of the module; -1 with an exception if one cannot be made. */
#ifndef KEYLAG_MODULE_H
#define KEYLAG_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#pragma GCC visibility push(hidden)

/* Have a string once, however often the module is made. */
int intern(PyObject **string, const char *text);

/* Have what another module has under a name. */
int import_name(PyObject **object, const char *module, const char *name);

/* What each file adds. */
int add_bodies(PyObject *module);
int add_clock(PyObject *module);
int add_notes(PyObject *module);
int add_sums(PyObject *module);
int add_totals(PyObject *module);
int add_watched(PyObject *module);

#pragma GCC visibility pop

#endif
