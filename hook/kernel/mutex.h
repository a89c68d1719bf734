/* Locks between the threads of one process.
 *
 * Signals wait while a thread holds one: a signal's handler that calls CUDA would otherwise wait for its
 * own thread. A child by fork finds all of them free: see process_forget_parent. */
#pragma once
#include "types.h"

struct mutex {
    u32 state;
};
struct guard {
    struct mutex *mutex;
    u64 signals;
};

void mutex_enter(struct guard *guard, struct mutex *mutex);
void mutex_leave(struct guard *guard);

/* Leaves at the end of the block. */
#define HOLD(mutex)                                                                                          \
    struct guard guard __attribute__((cleanup(mutex_leave)));                                                \
    mutex_enter(&guard, mutex)
