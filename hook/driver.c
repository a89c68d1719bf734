/* The driver's library: the functions of functions.def in it, and ours for them. */
#include "driver.h"
#include "elf.h"
#include "limits.h"
#include "mutex.h"
#include "process.h"
#include "system.h"

static const char *const names[FUNCTION_COUNT] = {
#define COVERED(name) #name,
#define CALLED(name) #name,
#include "functions.def"
#undef COVERED
#undef CALLED
};
/* NULL: programs get the driver's own. */
static void *const replacements[FUNCTION_COUNT] = {
#define COVERED(name) [FUNCTION_##name] = (void *)name,
#define CALLED(name)
#include "functions.def"
#undef COVERED
#undef CALLED
};

static void *found[FUNCTION_COUNT];
static u64 found_in; /* the generation of loaded libraries that "found" is of */
static bool loaded;

/* The driver's library by its name, or else whatever library has cuInit (one that stands for the driver). */
struct search {
    struct library named, other;
};
static bool look_at(const struct library *library, void *argument) {
    struct search *search = argument;
    if (elf_is_own(library)) return false;
    if (same_text(library->name, "libcuda.so.1")) {
        search->named = *library;
        return true;
    }
    if (!search->other.name && elf_function(library, "cuInit")) search->other = *library;
    return false;
}

/* One thread at a time: what an earlier look has found does not replace what a later one has. */
static struct mutex mutex;

void driver_forget(void) { mutex.state = 0; }

static void find_functions(void) {
    struct search search = {0};
    HOLD(&mutex);
    u64 generation = elf_generation();
    elf_visit(look_at, &search);
    const struct library *library = search.named.name ? &search.named : &search.other;
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        void *function = library->name ? elf_function(library, names[i]) : NULL;
        __atomic_store_n(&found[i], function, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&loaded, library->name != NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&found_in, generation, __ATOMIC_RELEASE);
}

static void refresh(void) {
    u64 generation = elf_generation();
    if (!generation || generation != __atomic_load_n(&found_in, __ATOMIC_ACQUIRE)) find_functions();
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
    return __atomic_load_n(&loaded, __ATOMIC_RELAXED);
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
