/* Who this process is, and whether another one still lives. */
#pragma once
#include "types.h"

/* PIDs repeat: a process is one by its PID, when it started, and the namespace of its PID. */
struct identity {
    u32 pid;
    u32 unused;
    u64 start;
    u64 namespace; /* 0: not known */
};

/* What the kernel says of this process. */
void process_identify(struct identity *identity);

/* Of a process in the same PID namespace. False where it cannot be known. */
bool process_ended(const struct identity *identity);

/* In a child by fork, once: all modules forget what they know of the parent, and free their locks. Whoever
 * comes from the program calls it before anything else. */
void process_forget_parent(void);
