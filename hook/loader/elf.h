/* Finds functions in the libraries that the process has loaded, without asking dlsym. */
#pragma once
#include "types.h"

struct library {
    uintptr_t base;
    const char *name;    /* DT_SONAME, else the last part of the path */
    const char *strings; /* the rest is for elf_function alone */
    const void *symbols, *hash, *gnu_hash;
    const uint16_t *versions;
};

/* Calls VISIT for each loaded library in the order of loading, until it returns true. Seldom: meanwhile a
 * lock of the loader is taken, and a child that another thread forks then can never take it. */
void elf_visit(bool (*visit)(const struct library *library, void *argument), void *argument);

/* NULL: the library exports no such function. */
void *elf_function(const struct library *library, const char *name);

/* Whether the library is the hook itself. */
bool elf_is_own(const struct library *library);
