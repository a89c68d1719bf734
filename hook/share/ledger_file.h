/* The file of the ledger: opened, locked, checked, and read by pages. */
#pragma once
#include "limits.h"
#include "process.h"

#define MOST_SLOTS 1024
#define LEDGER_PAGE 4096

struct slot {
    struct identity owner; /* PID 0: the slot is free */
    u64 held;              /* 1: its process keeps the file open */
    u64 bytes[];
};

/* Locks the ledger. False: there is none. The file stays open for the next time. */
bool ledger_file_lock(const struct limits *limits);
void ledger_file_unlock(void);

/* NULL: there are only INDEX slots. Valid until the next call. */
const struct slot *ledger_file_read(u32 index);

/* Also shows, to processes of all PID namespaces, that the owner has the file open. OWNER NULL: frees the
 * slot. False: the file system is full. */
bool ledger_file_write(u32 index, const struct identity *owner, const u64 *bytes);

/* Whether the process that wrote the slot has the file open since. */
bool ledger_file_is_held(u32 index);

void ledger_file_forget(void); /* in a child by fork */
