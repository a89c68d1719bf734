/* The cards, and who has how much of them. */
#define _GNU_SOURCE
#include "stub.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct card {
    uint8_t uuid[16];
    char name[48];
    uint64_t memory;
};

static struct card cards[CARDS];
static int card_count, visible[CARDS], file = -1, own = -1;
static uint32_t group;
static struct state *state;
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

int device_count, driver_version = 13000, lenient;
uint64_t context_size = 518ULL << 20, pool_chunk = 32ULL << 20;
char log_path[PATH_MAX];

static char folder[PATH_MAX];

static void parse_uuid(const char *text, uint8_t *uuid) {
    int digits = 0;
    for (text += 4; *text && digits < 32; text++) {
        if (*text == '-') continue;
        char digit[2] = {*text, 0};
        uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | strtol(digit, NULL, 16));
        digits++;
    }
}

static void read_control(void) {
    char path[PATH_MAX + 16], line[PATH_MAX];
    snprintf(path, sizeof path, "%s/control", folder);
    FILE *control = fopen(path, "re");
    while (control && fgets(line, sizeof line, control)) {
        struct card *card = &cards[card_count];
        if (card_count < CARDS && sscanf(line, "card %47s %lu", card->name, &card->memory) == 2) {
            parse_uuid(card->name, card->uuid);
            card_count++;
        }
        sscanf(line, "context %lu", &context_size);
        sscanf(line, "pool %lu", &pool_chunk);
        sscanf(line, "version %d", &driver_version);
        sscanf(line, "lenient %d", &lenient);
        sscanf(line, "log %4000s", log_path);
    }
    if (control) fclose(control);
}

__attribute__((constructor)) static void begin(void) {
    static char library[PATH_MAX];
    const char *named = getenv("CUDA_STUB_FOLDER");
    Dl_info info;
    if (named)
        snprintf(folder, sizeof folder, "%s", named);
    else if (dladdr(&cards, &info) && realpath(info.dli_fname, library))
        snprintf(folder, sizeof folder, "%s", dirname(library));
    read_control();
}

static int named_card(const char *name) {
    if (!strncmp(name, "GPU-", 4))
        for (int i = 0; i < card_count; i++)
            if (!strncmp(cards[i].name, name, strlen(name))) return i;
    char *end;
    long index = strtol(name, &end, 10);
    return end != name && !*end && index >= 0 && index < card_count ? (int)index : -1;
}

/* As CUDA does: indexes or UUIDs; what follows an unknown one is not visible. */
static void choose_visible(void) {
    const char *chosen = getenv("CUDA_VISIBLE_DEVICES");
    device_count = 0;
    if (!chosen) {
        for (int i = 0; i < card_count; i++) visible[device_count++] = i;
        return;
    }
    char names[1024], *rest = names, *name;
    snprintf(names, sizeof names, "%s", chosen);
    while ((name = strsep(&rest, ",")) && device_count < CARDS) {
        int card = named_card(name);
        if (card < 0) break;
        visible[device_count++] = card;
    }
}

static int lock(int command, short kind, long at) {
    struct flock range = {.l_type = kind, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int answer = fcntl(file, command, &range);
    return command == F_GETLK ? range.l_type != F_UNLCK : answer;
}

static void enter(void) {
    pthread_mutex_lock(&threads);
    while (lock(F_SETLKW, F_WRLCK, TABLE_LOCK)) {
    }
}

static void leave(void) {
    lock(F_SETLK, F_UNLCK, TABLE_LOCK);
    pthread_mutex_unlock(&threads);
}

static int alive(int index) { return index == own || lock(F_GETLK, F_WRLCK, PROCESS_LOCKS + index); }

static void claim_process(void) {
    enter();
    for (int i = 0; i < PROCESSES && own < 0; i++) {
        if (alive(i) || lock(F_SETLK, F_WRLCK, PROCESS_LOCKS + i)) continue;
        memset(&state->processes[i], 0, sizeof state->processes[i]);
        state->processes[i].pid = getpid();
        state->processes[i].group = group;
        own = i;
    }
    leave();
    if (own < 0) abort();
}

/* A child by fork has nothing of a card. */
static void forget(void) {
    pthread_mutex_init(&threads, NULL);
    own = -1;
    forget_contexts();
    forget_memory();
}

int initialize(void) {
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (!state) {
        char path[PATH_MAX + 16];
        snprintf(path, sizeof path, "%s/state", folder);
        const char *text = getenv("CUDA_STUB_GROUP");
        group = text ? (uint32_t)atoi(text) % GROUPS : 0;
        choose_visible();
        file = open(path, O_RDWR | O_CLOEXEC);
        void *map = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map != MAP_FAILED) state = map;
        pthread_atfork(NULL, NULL, forget);
    }
    pthread_mutex_unlock(&once);
    return state && device_count ? OK : NO_DEVICE;
}

int initialized(void) { return state != NULL; }
int card_of(int device) { return device >= 0 && device < device_count ? visible[device] : -1; }
uint64_t memory_of(int card) { return cards[card].memory; }
const uint8_t *uuid_of(int card) { return cards[card].uuid; }

static uint64_t sum(int card, int of_group) {
    uint64_t bytes = 0;
    for (int i = 0; i < PROCESSES; i++) {
        struct process *process = &state->processes[i];
        if (!process->used[card] || (of_group >= 0 && process->group != (uint32_t)of_group)) continue;
        if (alive(i))
            bytes += process->used[card];
        else
            process->used[card] = 0;
    }
    return bytes;
}

uint64_t used_of(int card) {
    enter();
    uint64_t bytes = sum(card, -1);
    leave();
    return bytes;
}

int take(int card, uint64_t bytes) {
    if (own < 0) claim_process();
    enter();
    int fits = bytes <= cards[card].memory && sum(card, -1) + bytes <= cards[card].memory;
    if (fits) {
        state->processes[own].used[card] += bytes;
        uint64_t now = sum(card, (int)group), *highest = &state->highest[group][card];
        if (now > *highest) *highest = now;
    }
    leave();
    return fits ? OK : OUT_OF_MEMORY;
}

void give_back(int card, uint64_t bytes) {
    enter();
    if (own >= 0) state->processes[own].used[card] -= bytes;
    leave();
}

int fault(const char *symbol) {
    for (int i = 0; state && i < FAULTS; i++) {
        struct fault *found = &state->faults[i];
        if (found->times > 0 && !strcmp(found->symbol, symbol)) {
            found->times--;
            return found->code;
        }
    }
    return OK;
}
