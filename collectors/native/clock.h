/* The stopwatch of a request.
 *
 * What is done on every watched call stands in the headers, to be inlined.  What
 * they declare is hidden from other libraries, so that it is reached directly.
 */
#ifndef KEYLAG_CLOCK_H
#define KEYLAG_CLOCK_H

#include <pthread.h>
#include <time.h>

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "faults.h"

#define CELLS 256   /* operation << 4 | phase, both below 16 */
#define MOST 16     /* counts, and bounds of times */
#define EVENTS 32768 /* model.EVENT_LIMIT */
#define SLOTS 128   /* for the tallies of a request; what finds none is kept beyond */
#define TALLIES_LIMIT (1 << 30) /* the numbers of tallies are below */

typedef struct {
    long next; /* the tally's number + 1, or 0 while it is free */
    long long sum;
} Slot;

/* No objects of Python's: nothing of Python's runs when a tally is added to. */
typedef struct Slots {
    Slot slots[SLOTS];
    struct Slots *beyond; /* for what finds none here, or NULL */
} Slots;

/* What is written down of a request that may be traced, as small as it can be. */
typedef struct {
    long long moment; /* the number of a tally, if it is one */
    PyObject *what;   /* the call that is entered, or NULL; a note is a tuple */
    int cell;         /* or one of the two below */
} Event;

enum { NOTED = -1, TALLIED = -2 };

typedef struct {
    PyObject_HEAD
    unsigned char at; /* as an index, never too large */
    char writes, kept;
    int counted;
    long long mark;
    unsigned long thread; /* the one that works on the request, or 0 */
    PyObject *layer, *missed;
    PyObject *method, *route, *auth_method, *environ;
    long long began;
    long long counts[MOST];
    Event *events;
    int written, room;
    long long cells[CELLS];
    Slots tallies;
} Clock;

#pragma GCC visibility push(hidden)

extern PyTypeObject ClockType;
extern PyObject *active; /* the context variable */
extern PyObject *reader; /* what tests read in place of the clock, or NULL */

/* Write an event down; what does not fit is left out. */
SELDOM void append(Clock *self, long long moment, int cell, PyObject *what);

/* Add to what a dictionary has under a number; -1 with an exception if it fails. */
SELDOM int add_in(void *sums, long number, long long sum);

/* Return the place of a number that finds none in the first slots; NULL with an
 * exception. */
SELDOM Slot *slot_beyond(Slots *slots, long number);

/* Raise that a number is no tally's, or that a sum is too large; return -1. */
SELDOM int no_tally(long number);
SELDOM int too_large(void);

/* Takes what is to be added under a number; -1 with an exception if it cannot. */
typedef int (*Adding)(void *sums, long number, long long sum);

/* Have what is in each slot added; -1 with an exception if one is not. */
int add_each(const Slots *slots, Adding add, void *sums);

/* Empty all slots. */
void empty(Slots *slots);

/* Return a list of numbers; NULL with an exception. */
PyObject *list_of(const long long *numbers, Py_ssize_t count);

/* Return a dictionary of the cells that have any time; NULL with an exception. */
PyObject *spent_of(const long long *cells);

/* Return the time of all cells. */
long long wall_of(const long long *cells);

/* Read a number; one that no `long` holds is the nearest that does.  -1 with an
 * exception if it is none. */
long to_long(PyObject *given);

/* Converters of PyArg_Parse..: how many counts there are, and which one. */
int to_size(PyObject *given, void *size);
int to_index(PyObject *given, void *index);

/* Set an attribute, which cannot be deleted. */
int set_only(PyObject *self, PyObject *name, PyObject *value);

/* Read the time from `reader`. */
SELDOM long long read_time(void);

#pragma GCC visibility pop

static inline long long now(void)
{
    if (reader != NULL)
        return read_time();
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec * 1000000000LL + moment.tv_nsec;
}

static inline unsigned long this_thread(void)
{
    return (unsigned long)pthread_self();
}

/* Return the clock of the request that this thread works on, a new reference, or
 * NULL if there is none.  A thread may have inherited the context of another's. */
static inline Clock *running(void)
{
    PyObject *found = NULL;
    if (PyContextVar_Get(active, NULL, &found) < 0)
        PyErr_Clear();
    if (found != NULL && !(Py_IS_TYPE(found, &ClockType) &&
                           ((Clock *)found)->thread == this_thread()))
        Py_CLEAR(found);
    return (Clock *)found;
}

/* Add times; what no 64 bits hold wraps around. */
static inline long long plus(long long one, long long other)
{
    return (long long)((unsigned long long)one + (unsigned long long)other);
}

static inline void book(Clock *self)
{
    long long moment = now();
    long long passed = (long long)((unsigned long long)moment - self->mark);
    self->cells[self->at] = plus(self->cells[self->at], passed);
    self->mark = moment;
}

static inline int turn(Clock *self, unsigned int cell, PyObject *call)
{
    int before = self->at;
    book(self);
    self->at = cell & (CELLS - 1);
    if (self->writes)
        append(self, self->mark, self->at, call);
    return before;
}

/* Add one to a count, if this clock has it. */
static inline void count_one(Clock *self, long index)
{
    if (index < self->counted)
        self->counts[index]++;
}

/* Return the place of a number; NULL with an exception. */
static inline Slot *slot_of(Slots *slots, long number)
{
    for (unsigned long probe = 0; probe < SLOTS; probe++) {
        Slot *tried = &slots->slots[((unsigned long)number + probe) % SLOTS];
        if (tried->next == 0 || tried->next == number + 1)
            return tried;
    }
    return slot_beyond(slots, number);
}

/* Add under a number; -1 with an exception if it fails. */
static inline int add_to(Slots *slots, long number, long long sum)
{
    if ((unsigned long)number >= TALLIES_LIMIT)
        return no_tally(number);
    Slot *slot = slot_of(slots, number);
    if (slot == NULL)
        return -1;
    if (__builtin_add_overflow(slot->sum, sum, &sum))
        return too_large();
    *slot = (Slot){number + 1, sum};
    return 0;
}

/* Add to a tally; -1 with an exception if it fails. */
static inline int tally(Clock *self, long number, long long sum)
{
    if (add_to(&self->tallies, number, sum) < 0)
        return -1;
    if (self->writes)
        append(self, number, TALLIED, NULL);
    return 0;
}

/* How the garbage collector sees a type: EACH(of) is of(each object that it holds);
 * FIRST is done before they are given up.
 * Without a tp_clear a type is to it like a tuple: a cycle that goes through one
 * also goes through something that can be cleared, because its objects are there
 * before it is. */
#define VISIT(name) Py_VISIT(self->name);
#define CLEAR(name) Py_CLEAR(self->name);
#define COLLECTED(Type, EACH, FIRST) \
    static int Type##_traverse(Type *self, visitproc visit, void *arg) \
    { \
        EACH(VISIT) \
        return 0; \
    } \
    static void Type##_dealloc(Type *self) \
    { \
        PyObject_GC_UnTrack(self); \
        Py_TRASHCAN_BEGIN(self, Type##_dealloc) \
        FIRST; \
        EACH(CLEAR) \
        Py_TYPE(self)->tp_free((PyObject *)self); \
        Py_TRASHCAN_END \
    }

/* What was never set is NULL, or None as Python has set it. */
static inline int is_set(const PyObject *object)
{
    return object != NULL && object != Py_None;
}

/* Return what Python sees of it: a borrowed reference. */
static inline PyObject *or_none(PyObject *object)
{
    return object == NULL ? Py_None : object;
}

static inline int is_asked(Clock *clock)
{
    return is_set(clock->layer);
}

#endif
