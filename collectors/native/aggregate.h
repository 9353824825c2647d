/* Sums over the requests with one combination of attributes. */
#ifndef KEYLAG_AGGREGATE_H
#define KEYLAG_AGGREGATE_H

#include "request_timer.h"

typedef struct {
    PyObject_HEAD Bounds bounds;
    Py_ssize_t count_size;
    long long min_ns, max_ns, request_count;
    long long buckets[COUNT_LIMIT + 1], counts[COUNT_LIMIT];
    long long cells[CELLS];
} Aggregate;

#pragma GCC visibility push(hidden)

extern PyTypeObject AggregateType;

/* Add a finished request. */
void add_request(Aggregate *self, const RequestTimer *timer);

/* Return a copy; NULL with an exception on failure. */
PyObject *copy_aggregate(const Aggregate *self);

#pragma GCC visibility pop

#endif
