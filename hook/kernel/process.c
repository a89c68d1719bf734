/* Who this process is, and whether another one still lives. */
#include "process.h"
#include "allocations.h"
#include "contexts.h"
#include "driver.h"
#include "ledger.h"
#include "limits.h"
#include "pools.h"
#include "system.h"

struct stat_fields {
    u64 pid, threads, start;
    char state;
};

static const char *skip_fields(const char *at, int count) {
    for (; count && *at; at++)
        if (*at == ' ') count--;
    return at;
}

static u64 number_at(const char *at) {
    u64 number = 0;
    for (; *at >= '0' && *at <= '9'; at++) number = number * 10 + (u64)(*at - '0');
    return number;
}

/* See proc_pid_stat(5). A command's name may hold blanks and parentheses, so fields count from its end. */
static bool read_stat(const char *path, struct stat_fields *fields) {
    char text[1024];
    if (read_file(path, text, sizeof text) <= 0) return false;
    const char *name_end = NULL;
    for (const char *at = text; *at; at++)
        if (*at == ')') name_end = at;
    if (!name_end || name_end[1] != ' ') return false;
    fields->pid = number_at(text);
    fields->state = name_end[2];
    fields->threads = number_at(skip_fields(name_end, 18));
    fields->start = number_at(skip_fields(name_end, 20));
    return true;
}

/* False: there is no /proc, or it is another PID namespace's, which numbers processes otherwise. */
static bool proc_is_own;

void process_identify(struct identity *identity) {
    struct stat_fields fields;
    char link[64];
    *identity = (struct identity){.pid = (u32)CALL1(getpid, 0)};
    long length = CALL4(readlinkat, HERE, "/proc/self/ns/pid", link, sizeof link - 1);
    proc_is_own = read_stat("/proc/self/stat", &fields) && fields.pid == identity->pid;
    if (!proc_is_own || length <= 5) return;
    link[length] = 0;
    identity->start = fields.start;
    identity->namespace = number_at(link + 5); /* pid:[4026531836] */
}

bool process_ended(const struct identity *identity) {
    struct stat_fields fields;
    char path[64];
    if (CALL2(kill, identity->pid, 0) == -ESRCH) return true;
    append_text(append_number(append_text(path, "/proc/"), identity->pid), "/stat");
    if (!proc_is_own || !read_stat(path, &fields)) return false;
    if (fields.start != identity->start) return true;
    /* Its memory is free, though nobody has waited for it. With other threads its first one alone has ended.
     */
    return (fields.state == 'Z' || fields.state == 'X') && fields.threads <= 1;
}

void process_forget_parent(void) {
    static u64 owner; /* twice the PID, plus 1 while that process forgets */
    u64 own = (u64)CALL1(getpid, 0) << 1;
    for (;;) {
        u64 seen = __atomic_load_n(&owner, __ATOMIC_ACQUIRE);
        if (seen == own) return;
        if (seen == (own | 1)) {
            CALL1(sched_yield, 0);
            continue;
        }
        if (!__atomic_compare_exchange_n(&owner, &seen, own | 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        driver_forget();
        limits_forget();
        ledger_forget();
        allocations_forget();
        contexts_forget();
        pools_forget();
        __atomic_store_n(&owner, own, __ATOMIC_RELEASE);
    }
}
