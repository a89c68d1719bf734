/* The driver's library: the functions of functions.def in it, and ours for them. */
#include "driver.h"
#include "elf.h"
#include "limits.h"
#include "mutex.h"
#include "process.h"
#include "system.h"

static const char *const names[FUNCTION_COUNT] = {
#define COVERED(name, parameters) #name,
#define CALLED(name, parameters) #name,
#include "functions.def"
#undef COVERED
#undef CALLED
};
/* NULL: programs get the driver's own. */
static void *const replacements[FUNCTION_COUNT] = {
#define COVERED(name, parameters) [FUNCTION_##name] = (void *)name,
#define CALLED(name, parameters)
#include "functions.def"
#undef COVERED
#undef CALLED
};

static void *found[FUNCTION_COUNT];
enum state { NOT_LOADED, STAND_IN, LOADED };
static enum state state;

/* One thread at a time: what an earlier look has found does not replace what a later one has. */
static struct mutex mutex;

void driver_forget(void) { mutex.state = 0; }

/* The driver's library by its name, or else whatever library has cuInit, so stands in for the driver. */
struct search {
    enum state state;
    void *functions[FUNCTION_COUNT];
};
/* Functions are looked up here, where the library cannot be unloaded meanwhile. */
static bool look_at(const struct library *library, void *argument) {
    struct search *search = argument;
    bool named = same_text(library->name, "libcuda.so.1");
    if (elf_is_own(library) || (!named && (search->state || !elf_function(library, "cuInit")))) return false;
    search->state = named ? LOADED : STAND_IN;
    for (int i = 0; i < FUNCTION_COUNT; i++) search->functions[i] = elf_function(library, names[i]);
    return named;
}

static void find_functions(void) {
    struct search search = {.state = NOT_LOADED};
    HOLD(&mutex);
    elf_visit(look_at, &search);
    for (int i = 0; i < FUNCTION_COUNT; i++)
        __atomic_store_n(&found[i], search.functions[i], __ATOMIC_RELAXED);
    __atomic_store_n(&state, search.state, __ATOMIC_RELEASE);
}

static bool is(enum state expected) { return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == expected; }

static void refresh(void) {
    if (!is(LOADED)) find_functions();
}

void driver_may_be_unloaded(void) {
    if (is(NOT_LOADED)) return;
    process_forget_parent();
    find_functions();
}

bool driver_begin(void) {
    process_forget_parent();
    refresh();
    return limits_of_container() != NULL;
}

static CUresult absent(void) { return CUDA_ERROR_NOT_INITIALIZED; }

void *driver_function(enum function function) {
    void *address = __atomic_load_n(&found[function], __ATOMIC_RELAXED);
    return address ? address : (void *)absent;
}

bool driver_has(enum function function) {
    return __atomic_load_n(&found[function], __ATOMIC_RELAXED) != NULL;
}

bool driver_is_loaded(void) {
    process_forget_parent();
    refresh();
    return !is(NOT_LOADED);
}

void *driver_replacement(void *address) {
    if (!address || !driver_begin()) return address;
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (replacements[i] && address == __atomic_load_n(&found[i], __ATOMIC_RELAXED))
            return replacements[i];
    return address;
}

bool driver_covers(const char *name) {
    if (name[0] != 'c' || name[1] != 'u') return false;
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (replacements[i] && same_text(name, names[i])) return true;
    return false;
}

bool driver_is_replacement(const void *address) {
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (replacements[i] && replacements[i] == address) return true;
    return false;
}
