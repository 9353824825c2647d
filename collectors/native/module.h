/* What each file adds to the module; -1 with an exception if it cannot. */
#ifndef KEYLAG_MODULE_H
#define KEYLAG_MODULE_H

#include "compat.h"

#pragma GCC visibility push(hidden)

int add_answer(PyObject *module);
int add_bodies(PyObject *module);
int add_clock(PyObject *module);
int add_notes(PyObject *module);
int add_sums(PyObject *module);
int add_totals(PyObject *module);
int add_watched(PyObject *module);

#pragma GCC visibility pop

#endif
