/* The file of the ledger: opened, locked, checked. */
#include "ledger_file.h"
#include "ledger.h"
#include "pause.h"
#include "system.h"

/* Slots are a power of 2 that divides a page, so no write of one is cut in two by a full file system. */
#define SMALLEST_SLOT 64
/* Far from the numbers that a program uses and closes by mistake; and not taken by its next file. */
#define DESCRIPTOR 960

struct header {
    char magic[16];
    u64 slot_size;
    u64 card_count;
};
static const char magic[16] = "gpushare ledger";

static u32 slot_size_for(int cards) {
    u32 size = SMALLEST_SLOT;
    while (size < sizeof(struct slot) + (u32)cards * sizeof(u64)) size *= 2;
    return size;
}

static long move_away(long descriptor) {
    long moved = CALL3(fcntl, descriptor, F_DUPFD_CLOEXEC, DESCRIPTOR);
    if (moved < 0) return descriptor;
    CALL1(close, descriptor);
    return moved;
}

/* Opened without O_CREAT first: the kernel may refuse that for another user's file (fs.protected_regular). */
static long open_or_create(const char *path) {
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    for (int attempt = 0; attempt < 3; attempt++) {
        long descriptor = CALL4(openat, HERE, path, flags, 0);
        if (descriptor != -ENOENT) return descriptor;
        descriptor = CALL4(openat, HERE, path, flags | O_CREAT | O_EXCL, 0666);
        /* For processes of other users, whatever the umask is. */
        if (descriptor >= 0) CALL2(fchmod, descriptor, 0666);
        if (descriptor != -EEXIST) return descriptor;
    }
    return -ENOENT;
}

static long open_path(const struct limits *limits) {
    char path[sizeof HOOK_LEDGER_FOLDER + sizeof "/.gpushare-" + IDENTITY_LENGTH];
    append_text(append_text(append_text(path, HOOK_LEDGER_FOLDER), "/.gpushare-"), limits->identity);
    long descriptor = open_or_create(path);
    return descriptor < 0 ? descriptor : move_away(descriptor);
}

/* False: locks are refused. A process may be stopped while it has the lock; the others then go on without:
 * each writes its own slot alone, so they can at most exceed the limit. */
static bool lock(struct ledger_file *file) {
    static const u64 shortest = 20 * 1000, longest = 1000 * 1000;
    static u64 patience = 1000 * 1000 * 1000;
    pause_at("lock");
#ifdef HOOK_MUTANT_NO_LOCK
    return true;
#endif
    for (u64 waited = 0, step = shortest;;) {
        long answer = CALL2(flock, file->descriptor, LOCK_EX | LOCK_NB);
        file->locked = answer == 0;
        if (file->locked) {
            patience = 1000 * 1000 * 1000;
            return true;
        }
        if (answer != -EAGAIN && answer != -EINTR) return false;
        if (!waited) pause_at("waiting");
        if (waited > patience) {
            patience = 10 * 1000 * 1000;
            return true;
        }
        sleep_nanoseconds(step);
        waited += step;
        step = step * 2 > longest ? longest : step * 2;
    }
}

static bool write_header(const struct ledger_file *file, int cards) {
    u8 page[4096] = {0};
    struct header *header = (struct header *)page;
    *header = (struct header){.slot_size = file->slot_size, .card_count = (u64)cards};
    memcpy(header->magic, magic, sizeof magic);
    return CALL4(pwrite, file->descriptor, page, file->slot_size, 0) == (long)file->slot_size;
}

/* Only an empty file or a ledger of the same cards is taken; whatever else lies there stays as it is. */
static bool check(struct ledger_file *file, const struct limits *limits) {
    struct file_status status;
    struct header header;
    if (CALL2(fstat, file->descriptor, &status) || !is_regular(&status)) return false;
    if (!status.size) return write_header(file, limits->count);
    if (CALL4(pread, file->descriptor, &header, sizeof header, 0) != (long)sizeof header) return false;
    file->slot_count = (u32)(status.size / file->slot_size) - 1;
    return same_bytes(header.magic, magic, sizeof magic) && header.slot_size == file->slot_size &&
           header.card_count == (u64)limits->count && status.size % file->slot_size == 0 &&
           status.size / file->slot_size <= MOST_SLOTS + 1;
}

bool ledger_file_open(struct ledger_file *file, const struct limits *limits) {
    *file = (struct ledger_file){.descriptor = open_path(limits), .slot_size = slot_size_for(limits->count)};
    if (file->descriptor < 0) return false;
    if (lock(file) && check(file, limits)) return true;
    ledger_file_close(file);
    return false;
}

/* Unlocked before it is closed: a child by fork may have the same descriptor still. */
void ledger_file_close(struct ledger_file *file) {
    if (file->locked) CALL2(flock, file->descriptor, LOCK_UN);
    CALL1(close, file->descriptor);
}

static u64 place_of(const struct ledger_file *file, u32 index) { return (index + 1ULL) * file->slot_size; }

u32 ledger_file_read(const struct ledger_file *file, u32 first, void *slots, u32 size) {
    long got = CALL4(pread, file->descriptor, slots, size, place_of(file, first));
    return got > 0 ? (u32)got / file->slot_size : 0;
}

bool ledger_file_write(struct ledger_file *file, u32 index, const struct slot *slot) {
    long written = CALL4(pwrite, file->descriptor, slot, file->slot_size, place_of(file, index));
    if (written == (long)file->slot_size && index >= file->slot_count) file->slot_count = index + 1;
    return written == (long)file->slot_size;
}

static struct {
    long descriptor; /* 0: none */
    u64 device, inode;
} holder;

/* A program may have closed it, and opened another file by the same number. */
static void close_holder(void) {
    struct file_status status;
    if (holder.descriptor && !CALL2(fstat, holder.descriptor, &status) && status.device == holder.device &&
        status.inode == holder.inode)
        CALL1(close, holder.descriptor);
    holder.descriptor = 0;
}

void ledger_file_hold(const struct ledger_file *file, const struct limits *limits, u32 index) {
    struct file_lock range = {.kind = F_WRLCK, .start = (i64)place_of(file, index), .length = 1};
    struct file_status status;
    close_holder();
    long descriptor = open_path(limits);
    if (descriptor < 0) return;
    CALL3(fcntl, descriptor, F_OFD_SETLK, &range);
    if (CALL2(fstat, descriptor, &status)) return;
    holder.descriptor = descriptor;
    holder.device = status.device;
    holder.inode = status.inode;
}

bool ledger_file_is_held(const struct ledger_file *file, u32 index) {
    struct file_lock range = {.kind = F_WRLCK, .start = (i64)place_of(file, index), .length = 1};
    return CALL3(fcntl, file->descriptor, F_OFD_GETLK, &range) == 0 && range.kind != F_UNLCK;
}

void ledger_file_forget(void) { holder.descriptor = 0; }
