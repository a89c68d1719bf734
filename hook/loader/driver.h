/* The driver's library: the functions of functions.def in it, and ours for them. */
#pragma once
#include "types.h"

#define COVERED(name, parameters) __attribute__((visibility("default"))) CUresult name parameters;
#define CALLED(name, parameters) CUresult name parameters;
#include "functions.def"
#undef COVERED
#undef CALLED

enum function {
#define COVERED(name, parameters) FUNCTION_##name,
#define CALLED(name, parameters) FUNCTION_##name,
#include "functions.def"
#undef COVERED
#undef CALLED
    FUNCTION_COUNT
};

/* Looks where the driver's functions are, where that is not known. Each covered
 * function begins with it (a child by fork forgets its parent here); false: the container has no limits, so
 * its arguments go to the driver as they are. */
bool driver_begin(void);

/* The driver's function, as driver_begin has found it; one that only fails where there is none. */
void *driver_function(enum function function);
#define REAL(name) ((__typeof__(&name))driver_function(FUNCTION_##name))

/* Whether the driver has this function. */
bool driver_has(enum function function);
#define HAS(name) driver_has(FUNCTION_##name)

/* The hook's function where ADDRESS is the driver's of a covered one, else ADDRESS itself. */
void *driver_replacement(void *address);

/* Whether NAME is a covered function, exactly. */
bool driver_covers(const char *name);

/* Whether ADDRESS is one of the hook's own covered functions. */
bool driver_is_replacement(const void *address);

/* Whether a library of CUDA's driver is loaded. */
bool driver_is_loaded(void);

/* A library was unloaded. */
void driver_may_be_unloaded(void);

void driver_forget(void); /* in a child by fork */
