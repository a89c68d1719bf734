/* A program that uses CUDA's driver as it is told, line by line, on its input.
 *
 * Run as `user WAY`: how it finds functions. dlsym, default (of everything that is loaded), v1, v2 (of
 * cuGetProcAddress), itself (v2 that it got through itself), thread (with per-thread streams),
 * itself-thread. Compiled with LINKED, it is linked with the driver, and WAY does not matter: a program,
 * or a plug-in with PLUGIN, which `user plugin FILE` opens with RTLD_DEEPBIND.
 *   call SYMBOL NAME VERSION ARGUMENT...   answers `CODE ERRNO VALUE...`; an argument is a number, `null`,
 *                                          `&` (a variable, whose value is told) or `x:HEX` (bytes)
 *   address SYMBOL NAME VERSION            answers with the file that the function is in
 *   random SEED TIMES BYTES                allocates and frees at random; answers how often it was refused
 *   threads COUNT TIMES BYTES              the same in threads
 *   pools COUNT TIMES BYTES                threads that each allocate in a stream, free, and wait
 *   cost TIMES BYTES                       answers with the nanoseconds of an allocation and its free
 *   forks COUNT TIMES BYTES                forks so often, while a thread allocates as above; each child asks
 *                                          the loader for a name, and ends
 *   reopen                                 closes the driver, and opens it again
 *   fork                                   a child goes on with the input; when it ends, this process does
 *   exec                                   becomes itself again
 *   setuid UID
 *   deny NUMBER                            the kernel answers EPERM to this system call from now on
 *   echo TEXT
 * ERRNO is 0 where a call left errno as it was.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef RTLD_DEEPBIND /* musl has none */
#define RTLD_DEEPBIND 0
#endif
#define MOST 12
#define ERRNO_BEFORE 77
#define HELD 64
#define UNKNOWN 9999
#define OUT_OF_MEMORY 2

typedef uint64_t word;
typedef int (*function)(word, word, word, word, word, word);
typedef int (*search)(const char *, void **, int, word, int *);

static const char *way = "";

#ifdef LINKED
#define ROW(name, version, per_thread, symbol) extern int symbol();
#include "../names.inc"
#undef ROW
static const struct {
    const char *symbol;
    void *address;
} linked[] = {
#define ROW(name, version, per_thread, symbol) {#symbol, (void *)symbol},
#include "../names.inc"
#undef ROW
};
static void *find(const char *symbol, const char *name, int version) {
    (void)name, (void)version;
    for (size_t i = 0; i < sizeof linked / sizeof *linked; i++)
        if (!strcmp(linked[i].symbol, symbol)) return linked[i].address;
    return NULL;
}
static void reopen(void) {}
#else
static void *opened;
static void *driver(void) {
    if (!opened) opened = dlopen("libcuda.so.1", RTLD_NOW);
    return opened;
}

/* By cuGetProcAddress of the way's version. */
static void *searched(const char *name, int version) {
    void *found = NULL;
    word flags = !strcmp(way, "thread") ? 2 : 0;
    int status, first = !strcmp(way, "v1");
    search ask = (search)dlsym(driver(), first ? "cuGetProcAddress" : "cuGetProcAddress_v2");
    if (!strcmp(way, "itself") && ask("cuGetProcAddress", (void **)&ask, 12000, 0, &status)) return NULL;
    if (!strcmp(way, "itself-thread") && ask("cuGetProcAddress", (void **)&ask, 12000, 2, &status))
        return NULL;
    return ask(name, &found, version, flags, &status) ? NULL : found;
}

static void reopen(void) { opened = dlclose(opened) ? opened : NULL; }

static void *find(const char *symbol, const char *name, int version) {
    if (!driver()) return NULL;
    if (!strcmp(way, "default")) return dlsym(RTLD_DEFAULT, symbol);
    if (!strcmp(way, "dlsym")) return dlsym(driver(), symbol);
    return searched(name, version);
}
#endif

static word argument(char *text, word *variable, unsigned char *bytes) {
    if (!strcmp(text, "&")) return (word)variable;
    if (!strcmp(text, "null")) return 0;
    if (strncmp(text, "x:", 2)) return strtoull(text, NULL, 0);
    for (text += 2; text[0] && text[1]; text += 2) {
        char pair[3] = {text[0], text[1], 0};
        *bytes++ = (unsigned char)strtoul(pair, NULL, 16);
    }
    return 0;
}

static void call(char *rest) {
    char *symbol = strsep(&rest, " "), *name = strsep(&rest, " "), *version = strsep(&rest, " "), *text;
    word words[MOST] = {0}, variables[MOST] = {0};
    static unsigned char bytes[MOST][256];
    int count = 0, told[MOST] = {0};
    while ((text = strsep(&rest, " ")) && count < MOST) {
        told[count] = !strcmp(text, "&");
        words[count] = argument(text, &variables[count], bytes[count]);
        if (!strncmp(text, "x:", 2)) words[count] = (word)bytes[count];
        count++;
    }
    function found = (function)find(symbol, name, atoi(version));
    errno = ERRNO_BEFORE;
    int code = found ? found(words[0], words[1], words[2], words[3], words[4], words[5]) : UNKNOWN;
    printf("%d %d", code, errno == ERRNO_BEFORE ? 0 : errno);
    for (int i = 0; i < count; i++)
        if (told[i]) printf(" %lu", variables[i]);
    puts("");
}

static void address(char *rest) {
    char *symbol = strsep(&rest, " "), *name = strsep(&rest, " "), *version = strsep(&rest, " ");
    Dl_info info = {.dli_fname = "-"};
    void *found = find(symbol, name, atoi(version));
    if (found) dladdr(found, &info);
    puts(info.dli_fname);
}

struct work {
    unsigned seed;
    long times, most;
    word context;
    long refused, wrong;
};

static void *at_random(void *given) {
    struct work *work = given;
    function allocate = (function)find("cuMemAlloc_v2", "cuMemAlloc", 3020);
    function release = (function)find("cuMemFree_v2", "cuMemFree", 3020);
    function use = (function)find("cuCtxSetCurrent", "cuCtxSetCurrent", 4000);
    word held[HELD] = {0};
    use(work->context, 0, 0, 0, 0, 0);
    for (long i = 0; i < work->times; i++) {
        word *one = &held[rand_r(&work->seed) % HELD];
        if (*one) {
            work->wrong += release(*one, 0, 0, 0, 0, 0) != 0;
            *one = 0;
            continue;
        }
        int code = allocate((word)one, 1 + (word)rand_r(&work->seed) % work->most, 0, 0, 0, 0);
        work->refused += code == OUT_OF_MEMORY;
        work->wrong += code && code != OUT_OF_MEMORY;
        if (code) *one = 0;
    }
    for (int i = 0; i < HELD; i++)
        if (held[i]) work->wrong += release(held[i], 0, 0, 0, 0, 0) != 0;
    return NULL;
}

/* The pool has nothing after each wait, so it grows each time. */
static void *from_pool(void *given) {
    struct work *work = given;
    function allocate = (function)find("cuMemAllocAsync", "cuMemAllocAsync", 11020);
    function release = (function)find("cuMemFreeAsync", "cuMemFreeAsync", 11020);
    function wait = (function)find("cuCtxSynchronize", "cuCtxSynchronize", 2000);
    function use = (function)find("cuCtxSetCurrent", "cuCtxSetCurrent", 4000);
    use(work->context, 0, 0, 0, 0, 0);
    for (long i = 0; i < work->times; i++) {
        word address;
        int code = allocate((word)&address, (word)work->most, 0, 0, 0, 0);
        work->refused += code == OUT_OF_MEMORY;
        work->wrong += code && code != OUT_OF_MEMORY;
        if (!code) work->wrong += release(address, 0, 0, 0, 0, 0) || wait(0, 0, 0, 0, 0, 0);
    }
    return NULL;
}

static void run(void *(*task)(void *), int threads, unsigned seed, long times, long most) {
    pthread_t started[MOST];
    struct work works[MOST], all = {0};
    word context = 0;
    function now = (function)find("cuCtxGetCurrent", "cuCtxGetCurrent", 4000);
    now((word)&context, 0, 0, 0, 0, 0);
    for (int i = 0; i < threads; i++) {
        works[i] =
            (struct work){.seed = seed + (unsigned)i, .times = times, .most = most, .context = context};
        pthread_create(&started[i], NULL, task, &works[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(started[i], NULL);
        all.refused += works[i].refused;
        all.wrong += works[i].wrong;
    }
    printf("0 0 %ld %ld\n", all.refused, all.wrong);
}

static void forks(int count, long times, long most) {
    pthread_t started;
    struct work work = {.seed = 1, .times = times, .most = most};
    int wrong = 0, status;
    function now = (function)find("cuCtxGetCurrent", "cuCtxGetCurrent", 4000);
    now((word)&work.context, 0, 0, 0, 0, 0);
    pthread_create(&started, NULL, at_random, &work);
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (!child) _exit(dlsym(RTLD_DEFAULT, "printf") && !dlsym(RTLD_DEFAULT, "cuNothing") ? 0 : 1);
        waitpid(child, &status, 0);
        wrong += !WIFEXITED(status) || WEXITSTATUS(status);
    }
    pthread_join(started, NULL);
    printf("0 0 %d %ld\n", wrong, work.wrong);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void cost(long times, long bytes) {
    function allocate = (function)find("cuMemAlloc_v2", "cuMemAlloc", 3020);
    function release = (function)find("cuMemFree_v2", "cuMemFree", 3020);
    word address = 0;
    long begun = now();
    int code = 0;
    for (long i = 0; i < times && !code; i++)
        code = allocate((word)&address, (word)bytes, 0, 0, 0, 0) || release(address, 0, 0, 0, 0, 0);
    printf("%d 0 %ld\n", code, (now() - begun) / times);
}

/* Returns in the child: the parent ends when that does. */
static void become_child(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child) {
        int status;
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    puts("0 0");
}

static int deny(unsigned number) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#ifdef PLUGIN
#define main plugin_main
#endif
int main(int count, char **arguments);
int main(int count, char **arguments) {
    char line[8192];
    way = count > 1 ? arguments[1] : "";
    if (count > 2 && !strcmp(way, "plugin")) {
        void *plugin = dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND);
        int (*begin)(int, char **) = plugin ? (int (*)(int, char **))dlsym(plugin, "plugin_main") : NULL;
        return begin ? begin(1, arguments) : 1;
    }
    setvbuf(stdin, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *rest = line, *word = strsep(&rest, " ");
        unsigned first = 0;
        long times = 0, most = 0;
        if (rest) sscanf(rest, "%u %ld %ld", &first, &times, &most);
        if (!strcmp(word, "call"))
            call(rest);
        else if (!strcmp(word, "address"))
            address(rest);
        else if (!strcmp(word, "random"))
            run(at_random, 1, first, times, most);
        else if (!strcmp(word, "threads"))
            run(at_random, (int)first, 1, times, most);
        else if (!strcmp(word, "pools"))
            run(from_pool, (int)first, 1, times, most);
        else if (!strcmp(word, "cost"))
            cost((long)first, times);
        else if (!strcmp(word, "forks"))
            forks((int)first, times, most);
        else if (!strcmp(word, "reopen"))
            reopen();
        else if (!strcmp(word, "fork"))
            become_child();
        else if (!strcmp(word, "exec"))
            execv("/proc/self/exe", arguments);
        else if (!strcmp(word, "setuid"))
            printf("%d 0\n", setuid(first));
        else if (!strcmp(word, "deny"))
            printf("%d 0\n", deny(first));
        else
            puts(rest ? rest : "");
    }
    return 0;
}
