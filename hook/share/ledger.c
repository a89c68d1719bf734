/* What all processes of the container have of each card. */
#include "ledger.h"
#include "ledger_file.h"
#include "mutex.h"
#include "pause.h"

#define NO_SLOT (~0U)

static struct mutex mutex;
static struct identity own; /* PID 0: not asked yet */
static u32 own_slot = NO_SLOT;
static u64 held[MOST_CARDS]; /* of this process, also where there is no ledger */

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

/* A process that executes another program lives, but has lost its memory and has closed the file. */
static bool has_ended(u32 index, const struct slot *slot) {
    bool known = own.namespace && slot->owner.namespace == own.namespace;
    if (known && process_ended(&slot->owner)) return true;
    return (!known || slot->held) && !ledger_file_is_held(index);
}

static void add(u64 *sum, u64 bytes) {
    if (__builtin_add_overflow(*sum, bytes, sum)) *sum = ~0ULL;
}

/* The ledger during one call: locked, or none. */
struct session {
    const struct limits *limits;
    bool locked;
    int card;
    u64 others;   /* bytes of the card that other processes have, as far as is known */
    bool has_own; /* own_slot is still this process's */
    u32 vacant;   /* a slot for a new process, or NO_SLOT */
};
enum ended { KEEP_ENDED, REMOVE_ENDED };

static void free_slot(struct session *session, u32 index) {
    ledger_file_write(index, NULL, NULL);
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
    else if (ended == REMOVE_ENDED && has_ended(index, slot))
        free_slot(session, index);
    else
        add(&session->others, slot->bytes[session->card]);
}

static void survey(struct session *session, enum ended ended) {
    const struct slot *slot;
    u32 index = 0;
    session->others = 0;
    session->has_own = false;
    session->vacant = NO_SLOT;
    for (; index < MOST_SLOTS && (slot = ledger_file_read(index)); index++)
        look_at(session, index, slot, ended);
    if (session->vacant == NO_SLOT && index < MOST_SLOTS) session->vacant = index;
}

static void begin(struct session *session, int card) {
    if (!own.pid) process_identify(&own);
    *session = (struct session){.limits = limits_of_container(), .card = card};
    session->locked = ledger_file_lock(session->limits);
}

static void end(const struct session *session) {
    if (session->locked) ledger_file_unlock();
}

/* Writes what this process has, in a new slot where the own one is gone (a new process, a new ledger). */
static void save(struct session *session) {
    if (!session->locked) return;
    if (!session->has_own) {
        survey(session, REMOVE_ENDED);
        own_slot = session->vacant;
        if (own_slot == NO_SLOT) return;
    }
    if (!ledger_file_write(own_slot, &own, held) && !session->has_own) own_slot = NO_SLOT;
}

static u64 available(const struct session *session) {
    u64 used = session->others, limit = session->limits->cards[session->card].bytes;
    add(&used, held[session->card]);
    return used < limit ? limit - used : 0;
}

static bool fits(struct session *session, u64 bytes) {
    if (session->locked) survey(session, KEEP_ENDED);
    if (bytes > available(session) && session->locked) survey(session, REMOVE_ENDED);
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

static bool find_own(void) {
    const struct slot *slot = own_slot == NO_SLOT ? NULL : ledger_file_read(own_slot);
    return slot && is_own(slot);
}

void ledger_give_back(int card, u64 bytes) {
    struct session session;
    if (card == UNLISTED || !bytes) return;
    HOLD(&mutex);
    begin(&session, card);
    held[card] -= bytes < held[card] ? bytes : held[card];
    session.has_own = session.locked && find_own();
    save(&session);
    end(&session);
}

u64 ledger_available(int card) {
    struct session session;
    if (card == UNLISTED) return 0;
    HOLD(&mutex);
    begin(&session, card);
    if (session.locked) survey(&session, REMOVE_ENDED);
    u64 bytes = available(&session);
    end(&session);
    return bytes;
}
