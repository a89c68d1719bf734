/* Locks between the threads of one process, by futex. */
#include "mutex.h"
#include "system.h"

enum { FREE, TAKEN, TAKEN_AND_AWAITED };
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };
enum { BLOCK = 0, SET = 2 };

#define SIGNAL(number) (1ULL << ((number) - 1))
/* All but those of the thread's own faults, which a program may report. */
static const u64 later =
    ~(SIGNAL(4) | SIGNAL(5) | SIGNAL(7) | SIGNAL(8) | SIGNAL(11)); /* ILL TRAP BUS FPE SEGV */

static void acquire(u32 *state) {
    u32 seen = FREE;
    if (__atomic_compare_exchange_n(state, &seen, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(state, TAKEN_AND_AWAITED, __ATOMIC_ACQUIRE) != FREE) {
        long answer = CALL4(futex, state, FUTEX_WAIT_PRIVATE, TAKEN_AND_AWAITED, NULL);
        /* A filter of system calls may refuse it. */
        if (answer != 0 && answer != -EAGAIN && answer != -EINTR) CALL1(sched_yield, 0);
    }
}

void mutex_enter(struct guard *guard, struct mutex *mutex) {
    guard->mutex = mutex;
    CALL4(sigprocmask, BLOCK, &later, &guard->signals, sizeof later);
    acquire(&mutex->state);
}

void mutex_leave(struct guard *guard) {
    if (__atomic_exchange_n(&guard->mutex->state, FREE, __ATOMIC_RELEASE) == TAKEN_AND_AWAITED)
        CALL3(futex, &guard->mutex->state, FUTEX_WAKE_PRIVATE, 1);
    CALL4(sigprocmask, SET, &guard->signals, NULL, sizeof guard->signals);
}
