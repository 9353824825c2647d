/* The stopwatch of a request.
 *
 * What is done on every watched call stands in the headers, to be inlined.  What
 * they declare is hidden from other libraries, so that it is reached directly.
 */
#ifndef KEYLAG_CLOCK_H
#define KEYLAG_CLOCK_H

#include <time.h>

#include "compat.h"
#include "faults.h"

#define CELLS 256   /* operation << 4 | phase, both below 16 */
#define MOST 16     /* counts, and bounds of times */
#define EVENTS 32768 /* model.EVENT_LIMIT */
#define SLOTS 128   /* for the tallies of a request; what finds none is kept beyond */

typedef struct {
    long next; /* the tally's number + 1, or 0 while it is free */
    long long sum;
} Slot;

/* What is written down of a request that may be traced, as small as it can be. */
typedef struct {
    long long moment; /* the number of a tally, if it is one */
    PyObject *what;   /* the call that is entered, or NULL; a note is a tuple */
    int cell;         /* or one of the two below */
} Event;

enum { NOTED = -1, TALLIED = -2 };

typedef struct {
    PyObject_HEAD
    int at;
    char writes, kept;
    long long mark;
    PyObject *layer, *missed;
    PyObject *method, *route, *auth_method, *environ, *beyond;
    long long began;
    int counted;
    long long counts[MOST];
    Event *events;
    int written, room;
    long long cells[CELLS];
    Slot slots[SLOTS];
} Clock;

#pragma GCC visibility push(hidden)

extern PyTypeObject ClockType;
extern PyObject *active; /* the context variable */
extern PyObject *reader; /* what tests read in place of the clock, or NULL */

/* Write an event down; what does not fit is left out. */
SELDOM void append(Clock *self, long long moment, int cell, PyObject *what);

/* Add to what a dictionary has under a number; -1 with an exception if it fails. */
SELDOM int add_in(void *sums, long number, long long sum);

/* Add to a tally that finds no slot; -1 with an exception if it fails. */
SELDOM int add_beyond(Clock *self, long number, long long sum);

/* Takes what is to be added under a number; -1 with an exception if it cannot. */
typedef int (*Adding)(void *sums, long number, long long sum);

/* Have each tally added; -1 with an exception if one is not. */
int add_tallies_to(const Clock *self, Adding add, void *sums);

/* Return a list of numbers; NULL with an exception. */
PyObject *list_of(const long long *numbers, Py_ssize_t count);

/* Return a dictionary of the cells that have any time; NULL with an exception. */
PyObject *spent_of(const long long *cells);

/* Return the time of all cells. */
long long wall_of(const long long *cells);

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

/* Return the clock of the request, a new reference, or NULL if there is none. */
static inline Clock *running(void)
{
    PyObject *found = NULL;
    if (PyContextVar_Get(active, NULL, &found) < 0)
        PyErr_Clear();
    if (found != NULL && !Py_IS_TYPE(found, &ClockType))
        Py_CLEAR(found);
    return (Clock *)found;
}

static inline void book(Clock *self)
{
    long long moment = now();
    self->cells[self->at] += moment - self->mark;
    self->mark = moment;
}

static inline int turn(Clock *self, int cell, PyObject *call)
{
    int before = self->at;
    book(self);
    self->at = cell & (CELLS - 1);
    if (self->writes)
        append(self, self->mark, self->at, call);
    return before;
}

/* Add to a tally; -1 with an exception if it fails. */
static inline int tally(Clock *self, long number, long long sum)
{
    Slot *slot = NULL;
    for (unsigned long probe = 0; slot == NULL && probe < SLOTS; probe++) {
        Slot *tried = &self->slots[((unsigned long)number + probe) % SLOTS];
        if (tried->next == 0 || tried->next == number + 1)
            slot = tried;
    }
    if (slot != NULL) {
        slot->next = number + 1;
        slot->sum += sum;
    } else if (add_beyond(self, number, sum) < 0) {
        return -1;
    }
    if (self->writes)
        append(self, number, TALLIED, NULL);
    return 0;
}

/* How the garbage collector sees a type: EACH(of) is of(each object that it holds). */
#define VISIT(name) Py_VISIT(self->name);
#define CLEAR(name) Py_CLEAR(self->name);
#define COLLECTED(Type, EACH) \
    static int Type##_traverse(Type *self, visitproc visit, void *arg) \
    { \
        EACH(VISIT) \
        return 0; \
    } \
    static int Type##_clear(Type *self) \
    { \
        EACH(CLEAR) \
        return 0; \
    }

/* The end of any of our types: what it holds is what it clears. */
static inline void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_TYPE(self)->tp_clear(self);
    Py_TYPE(self)->tp_free(self);
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
