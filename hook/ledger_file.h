/* The file of the ledger: opened, locked, checked. */
#pragma once
#include "limits.h"
#include "process.h"

#define MOST_SLOTS 1024

struct slot {
    struct identity owner; /* PID 0: the slot is free */
    u64 rest;
    u64 bytes[];
};

struct ledger_file {
    long descriptor;
    bool locked;
    u32 slot_size;
    u32 slot_count;
};

/* False: there is no ledger. Then nothing is to be closed. */
bool ledger_file_open(struct ledger_file *file, const struct limits *limits);
void ledger_file_close(struct ledger_file *file);

/* Reads SLOTS * slot_size bytes at most. Returns the number of whole slots read. */
u32 ledger_file_read(const struct ledger_file *file, u32 first, void *slots, u32 size);
bool ledger_file_write(struct ledger_file *file, u32 index, const struct slot *slot);

/* Another process sees by the slot's lock that this one lives, also from another PID namespace. */
void ledger_file_hold(const struct ledger_file *file, const struct limits *limits, u32 index);
bool ledger_file_is_held(const struct ledger_file *file, u32 index);

/* In a child by fork: the descriptor that holds a slot is the parent's. */
void ledger_file_forget(void);
