/* The file of the ledger: opened, locked, checked, and read by pages. */
#include "ledger_file.h"
#include "ledger.h"
#include "pause.h"
#include "system.h"

/* Slots are a power of 2 that divides a page, so that no write of one is cut in two by a full file system. */
#define SMALLEST_SLOT 64
/* Far from the numbers that a program uses, and closes by mistake; and its next file does not get it. */
#define DESCRIPTOR 960
#define LAST_STANDARD_DESCRIPTOR 2

#define MILLISECOND 1000000ULL
#define SHORTEST_PAUSE (MILLISECOND / 50)
#define LONGEST_PAUSE MILLISECOND
#define PATIENCE (1000 * MILLISECOND)
#define PATIENCE_AFTER_THAT (10 * MILLISECOND)

struct header {
    char magic[16];
    u64 slot_size;
    u64 card_count;
};
static const char magic[16] = "gpushare ledger";

/* All below is for the one thread that has the ledger's mutex. */
static struct {
    long descriptor; /* 0: none */
    u64 device, inode;
    u32 slot_size;
    int card_count;
    u32 held; /* place of the own slot; 0: none */
    bool locked;
} file;

static union {
    u8 bytes[LEDGER_PAGE];
    struct header header;
} page;
static u32 page_number;
static u32 page_length;

/* The descriptor that a child by fork has is its parent's: not used, and not closed, for the number may be
 * that of another file by now. */
void ledger_file_forget(void) { file.descriptor = 0; }

static u32 slot_size_for(int cards) {
    u32 size = SMALLEST_SLOT;
    while (size < sizeof(struct slot) + (u32)cards * sizeof(u64)) size *= 2;
    return size;
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

static long move_away(long descriptor) {
    long moved = -1;
    for (int least = DESCRIPTOR; moved < 0 && least > LAST_STANDARD_DESCRIPTOR; least /= 2)
        moved = CALL3(fcntl, descriptor, F_DUPFD_CLOEXEC, least);
    if (moved < 0) return descriptor;
    CALL1(close, descriptor);
    return moved;
}

static void close_file(void) {
    CALL1(close, file.descriptor);
    file.descriptor = 0;
}

static bool open_file(const struct limits *limits) {
    struct file_status status;
    char path[sizeof HOOK_LEDGER_FOLDER + sizeof "/.gpushare-" + IDENTITY_LENGTH];
    append_text(append_text(append_text(path, HOOK_LEDGER_FOLDER), "/.gpushare-"), limits->identity);
    long descriptor = open_or_create(path);
    if (descriptor < 0) return false;
    file.descriptor = move_away(descriptor);
    file.slot_size = slot_size_for(limits->count);
    file.card_count = limits->count;
    if (CALL2(fstat, file.descriptor, &status) || !is_regular(&status)) {
        close_file();
        return false;
    }
    file.held = 0;
    file.device = status.device;
    file.inode = status.inode;
    return true;
}

/* The program may have closed the descriptor, and opened another file by its number; or the ledger was
 * removed. */
static bool is_open(void) {
    struct file_status status;
    if (!file.descriptor || CALL2(fstat, file.descriptor, &status)) return false;
    if (status.device != file.device || status.inode != file.inode) return false;
    if (!status.links) close_file();
    return status.links;
}

/* False: locks are refused. A process may be stopped while it has the lock; the others then go on without:
 * each writes its own slot, so what they can do wrong is to exceed the limit. */
static bool lock(void) {
    static u64 patience = PATIENCE;
    pause_at("lock");
#ifdef HOOK_MUTANT_NO_LOCK
    return true;
#endif
    for (u64 waited = 0, pause = SHORTEST_PAUSE;;) {
        if (waited && !is_open()) return false;
        long answer = CALL2(flock, file.descriptor, LOCK_EX | LOCK_NB);
        file.locked = answer == 0;
        if (!file.locked && answer != -EAGAIN && answer != -EINTR) return false;
        if (file.locked || waited > patience) {
            patience = file.locked ? PATIENCE : PATIENCE_AFTER_THAT;
            return true;
        }
        if (!waited) pause_at("waiting");
        sleep_nanoseconds(pause);
        waited += pause;
        pause = pause * 2 > LONGEST_PAUSE ? LONGEST_PAUSE : pause * 2;
    }
}

/* The kernel sends SIGXFSZ where the process may not write files so large. The mutex keeps it waiting, and
 * here it is taken back. */
static bool write(const void *bytes, u32 place) {
    long written = CALL4(pwrite, file.descriptor, bytes, file.slot_size, place);
    if (written == -EFBIG) discard_signal(SIGXFSZ);
    return written == (long)file.slot_size;
}

static void read_page(u32 number) {
    long got = CALL4(pread, file.descriptor, page.bytes, LEDGER_PAGE, (u64)number * LEDGER_PAGE);
    page_number = number;
    page_length = got > 0 ? (u32)got : 0;
}

static bool write_header(void) {
    memset(page.bytes, 0, file.slot_size);
    memcpy(page.header.magic, magic, sizeof magic);
    page.header.slot_size = file.slot_size;
    page.header.card_count = (u64)file.card_count;
    page_length = file.slot_size;
    return write(page.bytes, 0);
}

/* Only an empty file or a ledger of as many cards is taken; whatever else lies there stays as it is. */
static bool check(void) {
    read_page(0);
    if (!page_length) return write_header();
    return page_length >= file.slot_size && same_bytes(page.header.magic, magic, sizeof magic) &&
           page.header.slot_size == file.slot_size && page.header.card_count == (u64)file.card_count;
}

bool ledger_file_lock(const struct limits *limits) {
    if (!is_open() && !open_file(limits)) return false;
    if (lock() && check()) return true;
    ledger_file_unlock();
    close_file();
    return false;
}

/* Not left to the end of the descriptor: a child by fork has it, too. */
void ledger_file_unlock(void) {
    if (file.locked) CALL2(flock, file.descriptor, LOCK_UN);
    file.locked = false;
}

static u32 place_of(u32 index) { return (index + 1) * file.slot_size; }

const struct slot *ledger_file_read(u32 index) {
    u32 place = place_of(index), within = place % LEDGER_PAGE;
    if (place / LEDGER_PAGE != page_number) read_page(place / LEDGER_PAGE);
    return within + file.slot_size <= page_length ? (const struct slot *)(page.bytes + within) : NULL;
}

static bool hold(u32 place) {
    struct file_lock all = {.kind = F_UNLCK}, own = {.kind = F_WRLCK, .start = place, .length = 1};
    if (file.held == place) return true;
    CALL3(fcntl, file.descriptor, F_OFD_SETLK, &all);
    file.held = CALL3(fcntl, file.descriptor, F_OFD_SETLK, &own) == 0 ? place : 0;
    return file.held;
}

bool ledger_file_write(u32 index, const struct identity *owner, const u64 *bytes) {
    u32 place = place_of(index), within = place % LEDGER_PAGE;
    if (place / LEDGER_PAGE != page_number) read_page(place / LEDGER_PAGE);
    struct slot *slot = (struct slot *)(page.bytes + within);
    memset(slot, 0, file.slot_size);
    if (owner) {
        slot->owner = *owner;
        slot->held = hold(place);
    }
    for (int i = 0; i < file.card_count && owner; i++) slot->bytes[i] = bytes[i];
    if (page_length < within + file.slot_size) page_length = within + file.slot_size;
    return write(slot, place);
}

bool ledger_file_is_held(u32 index) {
    struct file_lock other = {.kind = F_WRLCK, .start = place_of(index), .length = 1};
    return CALL3(fcntl, file.descriptor, F_OFD_GETLK, &other) == 0 && other.kind != F_UNLCK;
}
