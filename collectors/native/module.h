/* Initialization of the module: functions return -1 with an exception on failure. */
#ifndef KEYLAG_MODULE_H
#define KEYLAG_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#pragma GCC visibility push(hidden)

/* A docstring whose first line is the signature that Python and stubtest read. */
#define SIGNATURE(signature, module) \
    signature "\n--\n\nSee keylag_otel.pure." module "."

/* Intern a string once per process. */
int intern(PyObject **string, const char *text);

/* Import an attribute of another module once per process. */
int import_name(PyObject **object, const char *module, const char *name);

/* Add the types and functions of each file to the module. */
int add_context_managers(PyObject *module);
int add_request_timer(PyObject *module);
int add_hooks(PyObject *module);
int add_aggregator(PyObject *module);
int add_aggregate(PyObject *module);
int add_wrapper(PyObject *module);

#pragma GCC visibility pop

#endif
