/* A driver library for tests: the symbols that the plugin uses, answering from the file
 * "control" in its own folder.
 *
 * Its lines, read anew for each call:
 *   card INDEX UUID BYTES MAJOR MINOR MIG NUMA   a card
 *   linked INDEX INDEX                           linked by NVLink
 *   remapping INDEX COUNT                        rows of the card that could not be remapped
 *   recovery INDEX ACTION                        what the driver asks to do with the card
 *   xid INDEX CODE                               an event: each line is one, in their order
 *   fail SYMBOL INDEX CODE                       that call answers so; INDEX -1: for every card
 *   hang SYMBOL                                  that call does not return while the line is there
 *   used INDEX BYTES                             what is in use of a card
 *   process INDEX LIST PID BYTES                 a process in the list "compute" or "graphics"; -1: not told
 *   version TEXT                                 the driver's
 *   cgroup INDEX BYTES PATH                      what the processes of a cgroup use of a card
 *   log PATH                                     every call is written there, by its symbol
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define OK 0
#define UNINITIALIZED 1
#define INVALID_ARGUMENT 2
#define TIMEOUT 10
#define P2P_NOT_SUPPORTED 5
#define RECOVERY_ACTION 230
#define XID_EVENT 8ULL

struct card {
    char uuid[96];
    unsigned long long memory, numa;
    int major, minor, mig;
};
struct event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
struct field {
    unsigned id, scope;
    long long timestamp, latency;
    int type, code;
    union {
        unsigned number;
        double widest;
    } value;
};
struct memory {
    unsigned long long total, free, used;
};

static int initialised = 0, told_events = 0;

static char control[PATH_MAX + 16];

/* As it was loaded: what is put in its place later is another library. */
__attribute__((constructor)) static void find_control(void) {
    char library[PATH_MAX];
    Dl_info own;
    if (dladdr(&initialised, &own) && realpath(own.dli_fname, library))
        snprintf(control, sizeof control, "%s/control", dirname(library));
}

static FILE *open_control(void) { return fopen(control, "r"); }

static void note(const char *path, const char *symbol) {
    FILE *log = fopen(path, "a");
    if (log) {
        fprintf(log, "%s\n", symbol);
        fclose(log);
    }
}

/* Returns the code that the call is to answer with, or -1 where it is to hang for now. */
static int told(const char *symbol, int index, int first) {
    char line[512], name[96], path[384];
    int at, code, answer = OK;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control)) {
        if (sscanf(line, "fail %95s %d %d", name, &at, &code) == 3 && !strcmp(name, symbol) &&
            (at == -1 || at == index))
            answer = code;
        if (sscanf(line, "hang %95s", name) == 1 && !strcmp(name, symbol)) answer = -1;
        if (first && sscanf(line, "log %383s", path) == 1) note(path, symbol);
    }
    if (control) fclose(control);
    return answer;
}

static int begin(const char *symbol, int index) {
    int code = told(symbol, index, 1);
    while (code == -1) {
        usleep(1000);
        code = told(symbol, index, 0);
    }
    if (code == OK && !initialised && strcmp(symbol, "nvmlInitWithFlags")) return UNINITIALIZED;
    return code;
}

/* Handles are indices plus one, as pointers: none is NULL. */
static int index_of(void *device) { return (int)(long)device - 1; }

static int find(int index, struct card *card) {
    char line[512];
    int at, count = 0;
    struct card read;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control))
        if (sscanf(line, "card %d %95s %llu %d %d %d %llu", &at, read.uuid, &read.memory, &read.major,
                   &read.minor, &read.mig, &read.numa) == 7) {
            count++;
            if (at == index && card) *card = read;
        }
    if (control) fclose(control);
    return count;
}

static unsigned long long used_of(int index);

static int linked(int one, int other) {
    char line[512];
    int a, b, found = 0;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control))
        if (sscanf(line, "linked %d %d", &a, &b) == 2 &&
            ((a == one && b == other) || (a == other && b == one)))
            found = 1;
    if (control) fclose(control);
    return found;
}

/* Returns what the line of this card says, 0 without one. */
static int number_of(const char *word, int index) {
    char line[512], name[96];
    int at, number, found = 0;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control))
        if (sscanf(line, "%95s %d %d", name, &at, &number) == 3 && !strcmp(name, word) && at == index)
            found = number;
    if (control) fclose(control);
    return found;
}

/* Returns how many events there were; event number `which` is put where `event` is. */
static int events(int which, struct event *event) {
    char line[512];
    int at, code, count = 0;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control))
        if (sscanf(line, "xid %d %d", &at, &code) == 2 && count++ == which && event) {
            memset(event, 0, sizeof *event);
            event->device = (void *)(long)(at + 1);
            event->type = XID_EVENT;
            event->data = code;
        }
    if (control) fclose(control);
    return count;
}

#define BEGIN(index)                                                                                         \
    int code = begin(__func__, index);                                                                       \
    if (code != OK) return code
#define CARD(device)                                                                                         \
    struct card card;                                                                                        \
    BEGIN(index_of(device));                                                                                 \
    find(index_of(device), &card)

EXPORT int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    BEGIN(-2);
    initialised++;
    return OK;
}
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    char line[512], text[96] = "";
    BEGIN(-2);
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control)) sscanf(line, "version %95s", text);
    if (control) fclose(control);
    snprintf(version, length, "%s", text);
    return OK;
}
EXPORT int nvmlShutdown(void) {
    BEGIN(-2);
    initialised--;
    return OK;
}
EXPORT int nvmlDeviceGetCount_v2(unsigned *count) {
    BEGIN(-2);
    *count = find(-2, NULL);
    return OK;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    BEGIN((int)index);
    if ((int)index >= find(-2, NULL)) return INVALID_ARGUMENT;
    *device = (void *)(long)(index + 1);
    return OK;
}
EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    CARD(device);
    snprintf(uuid, length, "%s", card.uuid);
    return OK;
}
EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    CARD(device);
    snprintf(name, length, "NVIDIA Stub %d", card.major);
    return OK;
}
EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    CARD(device);
    *current = *pending = card.mig;
    return OK;
}
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory) {
    CARD(device);
    memory->total = memory->free = card.memory;
    memory->used = used_of(index_of(device));
    return OK;
}
EXPORT int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    CARD(device);
    *major = card.major;
    *minor = card.minor;
    return OK;
}
EXPORT int nvmlDeviceGetMemoryAffinity(void *device, unsigned size, unsigned long *nodes, unsigned scope) {
    (void)size, (void)scope;
    CARD(device);
    *nodes = 1UL << card.numa;
    return OK;
}
EXPORT int nvmlDeviceGetP2PStatus(void *one, void *other, unsigned index, unsigned *status) {
    BEGIN(index_of(one));
    *status = index == 2 && linked(index_of(one), index_of(other)) ? OK : P2P_NOT_SUPPORTED;
    return OK;
}
EXPORT int nvmlDeviceGetRemappedRows(void *device, unsigned *correctable, unsigned *uncorrectable,
                                     unsigned *pending, unsigned *failures) {
    BEGIN(index_of(device));
    *correctable = *uncorrectable = *pending = 0;
    *failures = number_of("remapping", index_of(device));
    return OK;
}
EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields) {
    BEGIN(index_of(device));
    for (int each = 0; each < count; each++) {
        fields[each].code = fields[each].id == RECOVERY_ACTION ? OK : INVALID_ARGUMENT;
        if (fields[each].code == OK) fields[each].code = told("RecoveryAction", index_of(device), 0);
        fields[each].value.number = number_of("recovery", index_of(device));
    }
    return OK;
}
EXPORT int nvmlEventSetCreate(void **set) {
    BEGIN(-2);
    told_events = events(-1, NULL);
    *set = &told_events;
    return OK;
}
EXPORT int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) {
    (void)types, (void)set;
    BEGIN(index_of(device));
    return OK;
}
EXPORT int nvmlEventSetWait_v2(void *set, struct event *event, unsigned milliseconds) {
    (void)set, (void)milliseconds;
    BEGIN(-2);
    if (told_events >= events(told_events, event)) return TIMEOUT;
    told_events++;
    return OK;
}
EXPORT int nvmlEventSetFree(void *set) {
    (void)set;
    BEGIN(-2);
    return OK;
}

#include "use.h"
#ifndef WITHOUT_LIMITS /* as a driver before r615 */
#include "limits.h"
#endif
