/* The parts of an answer. */
#ifndef KEYLAG_BODY_H
#define KEYLAG_BODY_H

#include "clock.h"

#pragma GCC visibility push(hidden)

int add_body(PyObject *module);

#pragma GCC visibility pop

#endif
