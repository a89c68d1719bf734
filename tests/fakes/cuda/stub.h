/* A driver library for tests: CUDA's driver API over cards that exist in one file.
 *
 * Beside the library lies the file "control", read when it is loaded:
 *   card UUID BYTES      a card
 *   context BYTES        what a context takes of its card
 *   pool BYTES           a pool grows by this much at a time
 *   version NUMBER       the answer of cuDriverGetVersion
 *   lenient 1            cuGetProcAddress finds every name
 *   log PATH             names that cuGetProcAddress is asked for are written there
 * and the file "state" (struct state), which all processes of all containers map: who has how much of
 * each card. It has the truth: memory belongs to a process and ends with it. The variable
 * CUDA_STUB_FOLDER names another folder than the library's own.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define CARDS 8
#define PAGE (2ULL << 20) /* in which memory of a card is taken */
#define PROCESSES 256
#define GROUPS 8
#define FAULTS 8

enum result {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500,
    NOT_SUPPORTED = 801,
};

/* A process holds a POSIX lock on the byte PROCESS_LOCKS + its index: the kernel releases it when the
 * process ends in any way, and a child by fork does not have it. */
#define TABLE_LOCK (1L << 40)
#define PROCESS_LOCKS (TABLE_LOCK + 1)
struct process {
    int32_t pid; /* in its own PID namespace */
    uint32_t group;
    uint64_t used[CARDS];
};
struct fault {
    char symbol[56];
    int32_t code;
    int32_t times; /* how often it still happens */
};
/* tests/fakes/cuda_driver.py reads and writes it, too. */
struct state {
    uint64_t highest[GROUPS][CARDS]; /* bytes that all processes of a group had at once */
    struct fault faults[FAULTS];
    struct process processes[PROCESSES];
};

#define EXPORT __attribute__((visibility("default")))

/* cards.c */
extern int device_count, driver_version, lenient;
extern uint64_t context_size, pool_chunk;
extern char log_path[];
int initialize(void);
int initialized(void);
int card_of(int device); /* INDEX of the card, or -1 */
uint64_t memory_of(int card);
const uint8_t *uuid_of(int card);
uint64_t used_of(int card); /* by all processes */
int take(int card, uint64_t bytes);
void give_back(int card, uint64_t bytes);
int fault(const char *symbol);

/* memory.c */
void free_of_context(void *context);
void forget_memory(void);
void shrink_pools(void); /* to their thresholds, as a synchronization does */

/* pages.c */
uint64_t room(uint64_t bytes, int small); /* an address; small: below 4 GiB */
int take_pages(int card, uint64_t bytes, uint64_t *address, int small_address);
void give_back_pages(int card, uint64_t address, uint64_t bytes);
void forget_pages(void);

/* arrays.c */
void free_arrays_of_context(void *context);
void forget_arrays(void);

/* contexts.c */
int current_device(void); /* -1: no context is current */
void *current_context(void);
void forget_contexts(void);

#define FAILS_IF_TOLD                                                                                        \
    do {                                                                                                     \
        int code = fault(__func__);                                                                          \
        if (code) return code;                                                                               \
    } while (0)
