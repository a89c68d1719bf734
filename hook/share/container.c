/* The limits of the container that this process runs in. */
#include "limits.h"
#include "mutex.h"
#include "system.h"

enum { UNREAD, PRESENT, ABSENT };

static struct limits limits;
static u32 state;
static struct mutex reading;

static void read_limits(void) {
    /* The stack of a thread may be small. */
    static char text[LONGEST_LIMITS];
    HOLD(&reading);
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != UNREAD) return;
    long length = read_file(HOOK_LIMITS, text, sizeof text);
    /* A process without descriptors left may have some the next time. */
    if (length == -EMFILE || length == -ENFILE || length == -ENOMEM) return;
    bool present = length > 0 && length < LONGEST_LIMITS - 1 && limits_parse(&limits, text, (size_t)length);
    __atomic_store_n(&state, present ? PRESENT : ABSENT, __ATOMIC_RELEASE);
}

void limits_forget(void) { reading.state = 0; }

const struct limits *limits_of_container(void) {
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == UNREAD) read_limits();
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == PRESENT ? &limits : NULL;
}
