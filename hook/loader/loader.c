/* Functions of the loader: a program that asks dlsym or dlvsym for a covered function gets the hook's.
 *
 * Every other question goes on to the next dlsym by a jump that leaves arguments, stack and return address
 * as they were: dlsym looks at its return address to know who asks (RTLD_NEXT, RTLD_DEFAULT). */
#include "driver.h"
#include "elf.h"

#define RTLD_DEFAULT ((void *)0)
#define RTLD_NEXT ((void *)-1)

typedef void *dlsym_function(void *handle, const char *name);
typedef int dlclose_function(void *handle);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);

/* In two registers. JUMP: go on there; NULL: VALUE is the answer. */
struct answer {
    void *jump, *value;
};

struct search {
    const char *name;
    bool after_own;
    void *function;
};

/* The next one after the hook, as RTLD_NEXT means it. */
static bool look_at(const struct library *library, void *argument) {
    struct search *search = argument;
    if (elf_is_own(library))
        search->after_own = true;
    else if (search->after_own)
        search->function = elf_function(library, search->name);
    return search->function != NULL;
}

static void *next_function(const char *name, void **known) {
    void *function = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (function) return function;
    struct search search = {.name = name};
    elf_visit(look_at, &search);
    __atomic_store_n(known, search.function, __ATOMIC_RELAXED);
    return search.function;
}

/* Calls dlsym, or dlvsym where VERSION is not NULL. */
static void *ask(void *next, void *handle, const char *name, const char *version) {
    void *value =
        version ? ((dlvsym_function *)next)(handle, name, version) : ((dlsym_function *)next)(handle, name);
    /* Not a call at the end, which a compiler makes a jump: the asking library is then not the hook. */
    __asm__ volatile("" : "+r"(value));
    return value;
}

static struct answer found(void *value) { return (struct answer){NULL, value}; }
static struct answer go_on(void *next) { return (struct answer){next, NULL}; }

/* What would be found without the hook, by a program that looks at everything that is loaded? */
static struct answer answer_from_all(void *next, const char *name, const char *version) {
    void *value = ask(next, RTLD_NEXT, name, version);
    if (value) return found(driver_replacement(value));
    /* A driver that only its user sees: the next dlsym finds the hook itself, and leaves no error. */
    return driver_is_loaded() ? go_on(next) : found(NULL);
}

/* Behind the library that asks may be another one that stands for the driver and asks for it in turn. */
static struct answer answer_behind_caller(void *next, const char *name, const char *version) {
    void *value = ask(next, RTLD_NEXT, name, version), *replacement = driver_replacement(value);
    if (value != replacement) return found(replacement);
    return value || driver_is_loaded() ? go_on(next) : found(NULL);
}

static struct answer answer(void *next, void *handle, const char *name, const char *version) {
    if (!next) return found(NULL);
    if (!name || !driver_covers(name)) return go_on(next);
    if (handle == RTLD_NEXT) return answer_behind_caller(next, name, version);
    if (handle == RTLD_DEFAULT) return answer_from_all(next, name, version);
    void *value = ask(next, handle, name, version);
    /* The handle is that of the program, which finds the hook first. */
    if (driver_is_replacement(value)) return answer_from_all(next, name, version);
    return found(driver_replacement(value));
}

__attribute__((used)) struct answer hook_dlsym(void *handle, const char *name) {
    static void *next;
    return answer(next_function("dlsym", &next), handle, name, NULL);
}

__attribute__((used)) struct answer hook_dlvsym(void *handle, const char *name, const char *version) {
    static void *next;
    return answer(next_function("dlvsym", &next), handle, name, version);
}

/* The driver may be loaded again, and elsewhere. */
__attribute__((visibility("default"))) int dlclose(void *handle) {
    static void *next;
    dlclose_function *real = (dlclose_function *)next_function("dlclose", &next);
    int result = real ? real(handle) : -1;
    driver_may_be_unloaded();
    return result;
}

/* In assembler, with what debuggers and unwinders have to know of the stack. */
#if defined(__x86_64__)
#define ENTRY(name)                                                                                          \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                              \
            ".cfi_startproc\n endbr64\n"                                                                     \
            "push %rdi\n push %rsi\n push %rdx\n .cfi_adjust_cfa_offset 24\n"                                \
            "call hook_" #name "\n mov %rdx, %rcx\n"                                                         \
            "pop %rdx\n pop %rsi\n pop %rdi\n .cfi_adjust_cfa_offset -24\n"                                  \
            "test %rax, %rax\n jz 1f\n jmp *%rax\n"                                                          \
            "1: mov %rcx, %rax\n ret\n"                                                                      \
            ".cfi_endproc\n .size " #name ", .-" #name "\n")
#else
/* x16: a jump through it may land where a call may (BTI). */
#define ENTRY(name)                                                                                          \
    __asm__(".text\n.balign 4\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"                   \
            ".cfi_startproc\n hint #34\n"                                                                    \
            "stp x29, x30, [sp, #-48]!\n .cfi_adjust_cfa_offset 48\n"                                        \
            ".cfi_rel_offset x29, 0\n .cfi_rel_offset x30, 8\n mov x29, sp\n"                                \
            "stp x0, x1, [sp, #16]\n str x2, [sp, #32]\n"                                                    \
            "bl hook_" #name "\n mov x16, x0\n mov x17, x1\n"                                                \
            "ldp x0, x1, [sp, #16]\n ldr x2, [sp, #32]\n ldp x29, x30, [sp], #48\n"                          \
            ".cfi_adjust_cfa_offset -48\n .cfi_restore x29\n .cfi_restore x30\n"                             \
            "cbz x16, 1f\n br x16\n"                                                                         \
            "1: mov x0, x17\n ret\n"                                                                         \
            ".cfi_endproc\n .size " #name ", .-" #name "\n")
#endif
ENTRY(dlsym);
ENTRY(dlvsym);
