/* Which function of which version a program gets by cuGetProcAddress. */
#include "stub.h"

#include <stdio.h>
#include <string.h>

#define PER_THREAD 2
enum found { FOUND, NO_SYMBOL, NO_VERSION };

struct name {
    const char *name;
    int version, per_thread;
    void *function;
};

#define ROW(name, version, per_thread, symbol) extern int symbol();
#include "names.inc"
#undef ROW

static const struct name names[] = {
#define ROW(name, version, per_thread, symbol) {name, version, per_thread, (void *)symbol},
#include "names.inc"
#undef ROW
};

static int not_supported(void) { return NOT_SUPPORTED; }

static void note(const char *symbol, int version, uint64_t flags) {
    FILE *log = log_path[0] ? fopen(log_path, "ae") : NULL;
    if (!log) return;
    fprintf(log, "\"%s\" %d %lu\n", symbol, version, (unsigned long)flags);
    fclose(log);
}

static int search(const char *symbol, void **function, int version, uint64_t flags, int *found) {
    const struct name *best = NULL;
    int known = 0, per_thread = (flags & PER_THREAD) != 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct name *row = &names[i];
        if (strcmp(row->name, symbol) || row->per_thread > per_thread) continue;
        known = 1;
        if (row->version > version) continue;
        if (!best || row->version > best->version ||
            (row->version == best->version && row->per_thread > best->per_thread))
            best = row;
    }
    *found = best ? FOUND : known ? NO_VERSION : NO_SYMBOL;
    *function = best ? best->function : NULL;
    return best ? OK : NOT_FOUND;
}

static int answer(const char *symbol, void **function, int version, uint64_t flags, int *found) {
    int unused;
    if (!symbol || !function) return INVALID_VALUE;
    note(symbol, version, flags);
    int code = search(symbol, function, version, flags, found ? found : &unused);
    if (!code || !lenient) return code;
    if (found) *found = FOUND;
    *function = (void *)not_supported; /* CUDA's runtime asks for the name "" first */
    return OK;
}

EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    FAILS_IF_TOLD;
    return answer(symbol, function, version, flags, NULL);
}
EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *found) {
    FAILS_IF_TOLD;
    return answer(symbol, function, version, flags, found);
}
/* Without a flag, the streams of each thread are meant. */
EXPORT int cuGetProcAddress_v2_ptsz(const char *symbol, void **function, int version, uint64_t flags,
                                    int *found) {
    FAILS_IF_TOLD;
    return answer(symbol, function, version, flags ? flags : PER_THREAD, found);
}
EXPORT int cuGetExportTable(const void **table, const void *id) {
    (void)table, (void)id;
    return NOT_FOUND;
}
