/* Pages of cards. Whoever calls holds the lock of memory.c. */
#include "stub.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next_address = 0x7f0000000000, next_small = 0x1000000;

static uint64_t rounded(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

uint64_t room(uint64_t bytes, int small) {
    uint64_t *next = small ? &next_small : &next_address, address = *next;
    *next += rounded(bytes ? bytes : 1, PAGE);
    return address;
}

/* As on an H200, see docs/real-card.md: large ones have pages of their own, small ones share some, and a
 * page is taken while any is in it. Contexts share none. */
#define UNIT 512
#define UNITS (PAGE / UNIT)
struct page {
    int card;
    void *context;
    uint64_t address;
    unsigned char used[UNITS];
    unsigned free;
    struct page *next;
};
static struct page *pages;

static int is_small(uint64_t bytes) { return bytes <= 1U << 20; }

/* Returns the first unit of a run that is free, or UNITS. */
static uint64_t run_in(const struct page *page, uint64_t units) {
    for (uint64_t at = 0, length = 0; page->free >= units && at < UNITS; at++) {
        length = page->used[at] ? 0 : length + 1;
        if (length == units) return at + 1 - units;
    }
    return UNITS;
}

static void mark(struct page *page, uint64_t at, uint64_t units, int used) {
    memset(page->used + at, used, units);
    page->free = used ? page->free - (unsigned)units : page->free + (unsigned)units;
}

static int take_small(int card, uint64_t bytes, uint64_t *address, int small_address) {
    uint64_t units = rounded(bytes, UNIT) / UNIT, at = UNITS;
    struct page *page = pages;
    for (; page; page = page->next)
        if (page->card == card && page->context == current_context() &&
            (page->address >> 32 == 0) == small_address && (at = run_in(page, units)) < UNITS)
            break;
    if (!page) {
        if (take(card, PAGE)) return OUT_OF_MEMORY;
        page = calloc(1, sizeof *page);
        *page =
            (struct page){.card = card, .address = room(PAGE, small_address), .free = UNITS, .next = pages};
        page->context = current_context();
        pages = page;
        at = 0;
    }
    mark(page, at, units, 1);
    *address = page->address + at * UNIT;
    return OK;
}

static void give_back_small(uint64_t address, uint64_t bytes) {
    struct page **at = &pages, *page;
    while (address - (*at)->address >= PAGE) at = &(*at)->next;
    page = *at;
    mark(page, (address - page->address) / UNIT, rounded(bytes, UNIT) / UNIT, 0);
    if (page->free < UNITS) return;
    *at = page->next;
    give_back(page->card, PAGE);
    free(page);
}

int take_pages(int card, uint64_t bytes, uint64_t *address, int small_address) {
    if (is_small(bytes)) return take_small(card, bytes, address, small_address);
    if (bytes > UINT64_MAX - PAGE || take(card, rounded(bytes, PAGE))) return OUT_OF_MEMORY;
    *address = room(bytes, small_address);
    return OK;
}

void give_back_pages(int card, uint64_t address, uint64_t bytes) {
    if (is_small(bytes))
        give_back_small(address, bytes);
    else
        give_back(card, rounded(bytes, PAGE));
}

void forget_pages(void) { pages = NULL; }
