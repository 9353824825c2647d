/* What requests add up to. */
#ifndef KEYLAG_TOTALS_H
#define KEYLAG_TOTALS_H

#include "clock.h"

#pragma GCC visibility push(hidden)

int add_totals(PyObject *module);

#pragma GCC visibility pop

#endif
