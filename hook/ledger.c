/* What all processes of the container have of each card. */
#include "ledger.h"
#include "ledger_file.h"
#include "mutex.h"
#include "pause.h"
#include "system.h"

#define NO_SLOT (~0U)

static struct mutex mutex;
static struct identity own; /* PID 0: not asked yet */
static u32 own_slot = NO_SLOT;
static u64 held[MOST_CARDS]; /* of this process, also where there is no ledger */

/* Room for slots that are read, and for one that is written; for the holder of the mutex. */
static union {
    u8 bytes[4096];
    u64 aligned;
} several, single;

void ledger_forget(void) {
    mutex.state = 0;
    own.pid = 0;
    own_slot = NO_SLOT;
    for (int i = 0; i < MOST_CARDS; i++) held[i] = 0;
    ledger_file_forget();
}

static bool is_own(const struct slot *slot) {
    return slot->owner.pid == own.pid && slot->owner.start == own.start &&
           slot->owner.namespace == own.namespace;
}

static bool has_ended(const struct ledger_file *file, u32 index, const struct slot *slot) {
    if (own.namespace && slot->owner.namespace == own.namespace) return process_ended(&slot->owner);
    return !ledger_file_is_held(file, index);
}

static void add(u64 *sum, u64 bytes) {
    if (__builtin_add_overflow(*sum, bytes, sum)) *sum = ~0ULL;
}

/* The ledger during one call: opened and locked, or none. */
struct session {
    const struct limits *limits;
    struct ledger_file file;
    bool open;
    int card;
    u64 others;   /* bytes of the card that other processes have, as far as is known */
    bool has_own; /* own_slot is still this process's */
    u32 vacant;   /* a slot for a new process, or NO_SLOT */
};
enum ended { KEEP_ENDED, REMOVE_ENDED };

static void free_slot(struct session *session, u32 index) {
    memset(single.bytes, 0, session->file.slot_size);
    ledger_file_write(&session->file, index, (const struct slot *)single.bytes);
    session->vacant = index;
}

static void look_at(struct session *session, u32 index, const struct slot *slot, enum ended ended) {
    if (!slot->owner.pid)
        session->vacant = index;
    else if (is_own(slot) && index == own_slot)
        session->has_own = true;
    /* What this process had before it executed another program is gone. */
    else if (is_own(slot))
        free_slot(session, index);
    else if (ended == REMOVE_ENDED && has_ended(&session->file, index, slot))
        free_slot(session, index);
    else
        add(&session->others, slot->bytes[session->card]);
}

static void survey(struct session *session, enum ended ended) {
    u32 count = session->file.slot_count, size = session->file.slot_size;
    session->others = 0;
    session->has_own = false;
    session->vacant = NO_SLOT;
    for (u32 first = 0, read; first < count; first += read) {
        read = ledger_file_read(&session->file, first, several.bytes, sizeof several.bytes);
        if (!read) break;
        for (u32 i = 0; i < read && first + i < count; i++)
            look_at(session, first + i, (const struct slot *)(several.bytes + (size_t)i * size), ended);
    }
    if (session->vacant == NO_SLOT && count < MOST_SLOTS) session->vacant = count;
}

static void begin(struct session *session, int card) {
    const struct limits *limits = limits_of_container();
    if (!own.pid) process_identify(&own);
    *session = (struct session){.limits = limits, .card = card};
    session->open = ledger_file_open(&session->file, limits);
}

static void end(struct session *session) {
    if (session->open) ledger_file_close(&session->file);
}

/* False: the file system is full. */
static bool write_own(struct session *session) {
    memset(single.bytes, 0, session->file.slot_size);
    struct slot *slot = (struct slot *)single.bytes;
    slot->owner = own;
    for (int i = 0; i < session->limits->count; i++) slot->bytes[i] = held[i];
    return ledger_file_write(&session->file, own_slot, slot);
}

/* Writes what this process has, in a new slot where the own one is gone (a new process, a new ledger). */
static void save(struct session *session) {
    if (!session->open) return;
    if (session->has_own) {
        write_own(session);
        return;
    }
    survey(session, REMOVE_ENDED);
    own_slot = session->vacant;
    if (own_slot == NO_SLOT) return;
    if (write_own(session))
        ledger_file_hold(&session->file, session->limits, own_slot);
    else
        own_slot = NO_SLOT;
}

static u64 available(const struct session *session) {
    u64 used = session->others, limit = session->limits->cards[session->card].bytes;
    add(&used, held[session->card]);
    return used < limit ? limit - used : 0;
}

static bool fits(struct session *session, u64 bytes) {
    if (session->open) survey(session, KEEP_ENDED);
    if (bytes > available(session) && session->open) survey(session, REMOVE_ENDED);
    return bytes <= available(session);
}

enum excess { REFUSE, COUNT };

static bool charge(int card, u64 bytes, enum excess excess) {
    struct session session;
    if (card == UNLISTED || !bytes) return !bytes;
    HOLD(&mutex);
    begin(&session, card);
    bool fit = fits(&session, bytes);
    pause_at("summed");
    if (fit || excess == COUNT) {
        add(&held[card], bytes);
        save(&session);
    }
    end(&session);
    return fit;
}

bool ledger_charge(int card, u64 bytes) { return charge(card, bytes, REFUSE); }

bool ledger_charge_anyway(int card, u64 bytes) { return charge(card, bytes, COUNT); }

static bool find_own(const struct session *session) {
    if (own_slot == NO_SLOT || own_slot >= session->file.slot_count) return false;
    const struct slot *slot = (const struct slot *)single.bytes;
    return ledger_file_read(&session->file, own_slot, single.bytes, session->file.slot_size) && is_own(slot);
}

void ledger_give_back(int card, u64 bytes) {
    struct session session;
    if (card == UNLISTED || !bytes) return;
    HOLD(&mutex);
    begin(&session, card);
    held[card] -= bytes < held[card] ? bytes : held[card];
    session.has_own = session.open && find_own(&session);
    save(&session);
    end(&session);
}

u64 ledger_available(int card) {
    struct session session;
    if (card == UNLISTED) return 0;
    HOLD(&mutex);
    begin(&session, card);
    if (session.open) survey(&session, REMOVE_ENDED);
    u64 bytes = available(&session);
    end(&session);
    return bytes;
}
