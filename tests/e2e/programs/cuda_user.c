/* A user's program: takes memory of cards by CUDA's driver, and says what became of it.
 *
 *   cuda_user [hold] CARD=MIB...
 *
 * A line for each request: "0=1024 taken" or "0=1024 refused 2" with CUDA's code, then one for each card that
 * was named: "0: total 4096, free 3072". With "hold" it keeps what it has until it is ended.
 *
 * It finds the driver by dlopen; compiled with LINKED, it is linked with it.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CARDS 8
#define MIB (1ull << 20)
/* clang-format off */
#define FUNCTIONS(use) \
    use(cuInit, (unsigned)) \
    use(cuDevicePrimaryCtxRetain, (void **, int)) \
    use(cuCtxSetCurrent, (void *)) \
    use(cuMemAlloc_v2, (uint64_t *, size_t)) \
    use(cuMemGetInfo_v2, (size_t *, size_t *))
/* clang-format on */

#ifdef LINKED
#define DECLARE(name, parameters) int name parameters;
FUNCTIONS(DECLARE)
static int load(void) { return 1; }
#else
#include <dlfcn.h>
#define DECLARE(name, parameters) static int(*name) parameters;
FUNCTIONS(DECLARE)
static int load(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return fprintf(stderr, "%s\n", dlerror()), 0;
#define FIND(name, parameters)                                                                               \
    if (!(name = (int(*) parameters)dlsym(driver, #name))) return 0;
    FUNCTIONS(FIND)
    return 1;
}
#endif

static void *contexts[CARDS];

static int use_card(int card) {
    int code = contexts[card] ? 0 : cuDevicePrimaryCtxRetain(&contexts[card], card);
    return code ? code : cuCtxSetCurrent(contexts[card]);
}

static void take(const char *request) {
    int card = 0;
    unsigned long long mebibytes = 0;
    uint64_t address;
    if (sscanf(request, "%d=%llu", &card, &mebibytes) != 2 || card < 0 || card >= CARDS) exit(2);
    int code = use_card(card);
    if (!code) code = cuMemAlloc_v2(&address, mebibytes * MIB);
    if (code)
        printf("%s refused %d\n", request, code);
    else
        printf("%s taken\n", request);
}

static void tell(int card) {
    size_t left, total;
    if (use_card(card) || cuMemGetInfo_v2(&left, &total)) return;
    printf("%d: total %llu, free %llu\n", card, total / MIB, left / MIB);
}

/* The first process of a container is ended by no signal that it does not handle. */
static void end(int number) { _exit(128 + number); }

int main(int count, char **words) {
    int hold = count > 1 && !strcmp(words[1], "hold");
    signal(SIGTERM, end);
    if (!load()) return 127;
    int code = cuInit(0);
    if (code) return fprintf(stderr, "cuInit: %d\n", code), 1;
    for (int i = 1 + hold; i < count; i++) take(words[i]);
    for (int card = 0; card < CARDS; card++)
        if (contexts[card]) tell(card);
    fflush(stdout);
    while (hold) pause();
    return 0;
}
