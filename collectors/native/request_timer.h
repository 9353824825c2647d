/* The request timer.
 *
 * Headers define the functions that every wrapped call runs, so that the compiler
 * inlines them.  Symbols are hidden, so that calls between files bypass the PLT.
 */
#ifndef KEYLAG_REQUEST_TIMER_H
#define KEYLAG_REQUEST_TIMER_H

#include <time.h>

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "faults.h"

#define CELLS 256         /* operation << 4 | phase, both below 16 */
#define COUNT_LIMIT 16    /* the most counts, kinds of single calls, bucket bounds */
#define EVENT_LIMIT 32768 /* model.EVENT_LIMIT */
#define SLOT_COUNT 128    /* counters in one table; more go to an overflow table */
#define COUNTER_LIMIT (1 << 30) /* counter ids are below this */

typedef struct {
    long id_plus_1; /* 0 while the slot is free */
    long long sum;
} Slot;

/* A hash table of counters without Python objects: incrementing runs no Python code. */
typedef struct CounterTable {
    Slot slots[SLOT_COUNT];
    struct CounterTable *overflow; /* the next table, or NULL */
} CounterTable;

/* An event of a request that may be traced. */
typedef struct {
    long long moment; /* nanoseconds; the counter id of an INCREMENT */
    PyObject *what;   /* the entered call, NULL on exit; a tuple for an ANNOTATION */
    int cell;         /* a cell, ANNOTATION or INCREMENT */
} Event;

/* Upper bounds of buckets, ascending. */
typedef struct {
    Py_ssize_t count;
    long long limits[COUNT_LIMIT];
} Bounds;

/* Single calls of one kind: nanoseconds, then the number of calls in each bucket. */
typedef long long CallTimes[1 + COUNT_LIMIT + 1];

enum { ANNOTATION = -1, INCREMENT = -2 };

typedef struct {
    PyObject_HEAD unsigned char
        current_cell; /* an index of `cells`, in range by its type */
    char records_events, is_traced;
    int count_size;
    long long last_tick;
    unsigned long thread; /* which works on the request, or 0 */
    PyObject *cache_layer, *last_layer, *missed_region;
    PyObject *method, *route, *auth_method, *environ;
    long long started_at;
    long long counts[COUNT_LIMIT];
    Event *events;
    int event_count, event_capacity;
    long long cells[CELLS];
    CallTimes calls[COUNT_LIMIT];
    CounterTable counters;
} RequestTimer;

#pragma GCC visibility push(hidden)

extern PyTypeObject RequestTimerType;
extern __thread char thread_mark __attribute__((tls_model("initial-exec")));
extern PyObject *timer_var;   /* the context variable */
extern PyObject *time_source; /* replaces the system clock in tests, or NULL */
extern Bounds call_bounds;    /* model.CALL_BOUNDS */

/* Append an event; drop it if the event limit is reached or memory is short. */
COLD void append_event(RequestTimer *self, long long moment, int cell, PyObject *what);

/* Add to an integer in a dictionary; -1 with an exception on failure. */
COLD int add_to_dict(void *sums, long number, long long sum);

/* Return the slot of a counter in the overflow tables; NULL with an exception on
 * failure. */
COLD Slot *overflow_slot(CounterTable *slots, long number);

/* Raise ValueError for an id, OverflowError for a sum that is out of range; return -1. */
COLD int invalid_counter(long number);
COLD int sum_overflow(void);

/* Adds to one counter of `sums`; -1 with an exception on failure. */
typedef int (*AddCounter)(void *sums, long number, long long sum);

/* Call `add` for each counter of a table; -1 with an exception on failure. */
int add_all_counters(const CounterTable *slots, AddCounter add, void *sums);

/* Free all slots and overflow tables. */
void clear_table(CounterTable *slots);

/* Return a Python list of numbers; NULL with an exception on failure. */
PyObject *list_of_numbers(const long long *numbers, Py_ssize_t count);

/* Return a dictionary of cell to nanoseconds, without zeros; NULL with an exception on
 * failure. */
PyObject *self_times_of(const long long *cells);

/* Return a dictionary of kind to a list of nanoseconds and the number in each bucket,
 * of the kinds that had calls; NULL with an exception on failure. */
PyObject *dict_of_calls(const CallTimes *calls);

/* Add single calls of all kinds to sums. */
void add_calls(CallTimes *sums, const CallTimes *calls);

/* Convert any iterable of bounds; -1 with an exception on failure. */
int read_bounds(Bounds *bounds, PyObject *given);

/* Return the sum of all cells in nanoseconds. */
long long wall_time_of(const long long *cells);

/* Convert to `long`, clamped to its range.  -1 with an exception if the object is no
 * integer. */
long to_long(PyObject *given);

/* Converters for PyArg_Parse: a number of counts, and the index of a count. */
int to_size(PyObject *given, void *size);
int to_index(PyObject *given, void *index);

/* tp_setattro that refuses to delete attributes. */
int set_undeletable(PyObject *self, PyObject *name, PyObject *value);

/* Return the time of `time_source`, 0 if it fails. */
COLD long long read_time_source(void);

#pragma GCC visibility pop

static inline long long now(void)
{
    if (time_source != NULL)
        return read_time_source();
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec * 1000000000LL + moment.tv_nsec;
}

/* Return what identifies this thread: the address of a variable that each thread has. */
static inline unsigned long this_thread(void)
{
    return (unsigned long)&thread_mark;
}

/* Return a new reference to the timer of the request that this thread works on, or
 * NULL.  A thread that inherited the context of another has no timer. */
static inline RequestTimer *current_timer(void)
{
    PyObject *found = NULL;
    if (PyContextVar_Get(timer_var, NULL, &found) < 0)
        PyErr_Clear();
    if (found != NULL && !(Py_IS_TYPE(found, &RequestTimerType) &&
                           ((RequestTimer *)found)->thread == this_thread()))
        Py_CLEAR(found);
    return (RequestTimer *)found;
}

/* Add with wrap-around instead of undefined overflow. */
static inline long long wrapping_add(long long one, long long other)
{
    return (long long)((unsigned long long)one + (unsigned long long)other);
}

static inline void accumulate(RequestTimer *self)
{
    long long moment = now();
    long long passed = (long long)((unsigned long long)moment - self->last_tick);
    self->cells[self->current_cell] =
        wrapping_add(self->cells[self->current_cell], passed);
    self->last_tick = moment;
}

static inline int switch_cell(RequestTimer *self, unsigned int cell, PyObject *call)
{
    int before = self->current_cell;
    accumulate(self);
    self->current_cell = cell & (CELLS - 1);
    if (self->records_events)
        append_event(self, self->last_tick, self->current_cell, call);
    return before;
}

/* Return the number of the bucket that a value is in. */
static inline Py_ssize_t bucket_of(const Bounds *bounds, long long value)
{
    Py_ssize_t bucket = 0;
    while (bucket < bounds->count && value > bounds->limits[bucket])
        bucket++;
    return bucket;
}

/* Record a single call that started then and ended at the last tick. */
static inline void record_call(RequestTimer *self, Py_ssize_t kind,
                               long long started_at)
{
    long long *times = self->calls[kind];
    long long passed = (long long)((unsigned long long)self->last_tick - started_at);
    times[0] = wrapping_add(times[0], passed);
    times[1 + bucket_of(&call_bounds, passed)]++;
}

/* Increment a count if the timer has that index. */
static inline void count_if_present(RequestTimer *self, long index)
{
    if (index < self->count_size)
        self->counts[index]++;
}

/* Return the slot of a counter, used or free; NULL with an exception on failure. */
static inline Slot *find_slot(CounterTable *slots, long number)
{
    for (unsigned long probe = 0; probe < SLOT_COUNT; probe++) {
        Slot *tried = &slots->slots[((unsigned long)number + probe) % SLOT_COUNT];
        if (tried->id_plus_1 == 0 || tried->id_plus_1 == number + 1)
            return tried;
    }
    return overflow_slot(slots, number);
}

/* Add to a counter of a table; -1 with an exception on failure. */
static inline int add_counter(CounterTable *slots, long number, long long sum)
{
    if ((unsigned long)number >= COUNTER_LIMIT)
        return invalid_counter(number);
    Slot *slot = find_slot(slots, number);
    if (slot == NULL)
        return -1;
    if (__builtin_add_overflow(slot->sum, sum, &sum))
        return sum_overflow();
    *slot = (Slot){number + 1, sum};
    return 0;
}

/* Add to a counter of the request; -1 with an exception on failure. */
static inline int increment(RequestTimer *self, long number, long long sum)
{
    if (add_counter(&self->counters, number, sum) < 0)
        return -1;
    if (self->records_events)
        append_event(self, number, INCREMENT, NULL);
    return 0;
}

/* Define tp_traverse and tp_dealloc of a type.  EACH(of) expands to of(member) for each
 * object that it holds; BEFORE_CLEAR runs first in tp_dealloc.
 * These types need no tp_clear, like tuples: their members exist before they do, so a
 * reference cycle through one also contains an object that can be cleared. */
#define VISIT(name) Py_VISIT(self->name);
#define CLEAR(name) Py_CLEAR(self->name);
#define GC_METHODS(Type, EACH, BEFORE_CLEAR) \
    static int Type##_traverse(Type *self, visitproc visit, void *arg) \
    { \
        EACH(VISIT) \
        return 0; \
    } \
    static void Type##_dealloc(Type *self) \
    { \
        PyObject_GC_UnTrack(self); \
        Py_TRASHCAN_BEGIN(self, Type##_dealloc) BEFORE_CLEAR; \
        EACH(CLEAR) \
        Py_TYPE(self)->tp_free((PyObject *)self); \
        Py_TRASHCAN_END \
    }

/* An unset member is NULL, or None if Python code assigned that. */
static inline int is_set(const PyObject *object)
{
    return object != NULL && object != Py_None;
}

/* Return the object, or None for NULL: a borrowed reference. */
static inline PyObject *or_none(PyObject *object)
{
    return object == NULL ? Py_None : object;
}

static inline int has_cache_layer(RequestTimer *timer)
{
    return is_set(timer->cache_layer);
}

#endif
