/* What the requests of one kind add up to. */
#ifndef KEYLAG_TOTALS_H
#define KEYLAG_TOTALS_H

#include "clock.h"

typedef struct {
    PyObject_HEAD
    Py_ssize_t bounded, counted;
    long long shortest, longest, times;
    long long bounds[MOST], buckets[MOST + 1], counts[MOST];
    long long cells[CELLS];
} Totals;

#pragma GCC visibility push(hidden)

extern PyTypeObject TotalsType;

/* Add a request. */
void add_clock_to(Totals *self, const Clock *clock);

/* Return a copy; NULL with an exception. */
PyObject *copy_of(const Totals *self);

#pragma GCC visibility pop

#endif
