/* Finds functions in the libraries that the process has loaded. See elf(5) and the gABI; the loader has
 * checked what is read here when it loaded the library. */
#include "elf.h"
#include "system.h"

struct program_header {
    u32 type, flags;
    u64 offset, address, physical, file_size, memory_size, align;
};
struct dynamic {
    i64 tag;
    u64 value;
};
struct symbol {
    u32 name;
    u8 info, other;
    uint16_t section;
    u64 value, size;
};
struct loaded {
    uintptr_t base;
    const char *path;
    const struct program_header *headers;
    uint16_t header_count;
};
enum { PT_DYNAMIC = 2 };
enum {
    DT_HASH = 4,
    DT_STRTAB = 5,
    DT_SYMTAB = 6,
    DT_SONAME = 14,
    DT_GNU_HASH = 0x6ffffef5,
    DT_VERSYM = 0x6ffffff0
};
enum { STT_FUNC = 2, STB_GLOBAL = 1, STB_WEAK = 2, VERSION_HIDDEN = 0x8000 };

typedef int visitor(struct loaded *loaded, size_t size, void *argument);
__attribute__((weak)) extern int dl_iterate_phdr(visitor *visit, void *argument);

/* Where the hook itself is loaded; linkers define it. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static const char *last_part(const char *path) {
    const char *part = path;
    for (const char *at = path; *at; at++)
        if (*at == '/') part = at + 1;
    return part;
}

/* glibc has added the base to addresses in the dynamic section, musl has not. */
static const void *address_in(const struct loaded *loaded, u64 value) {
    return (const void *)(value < loaded->base ? loaded->base + value : value);
}

static bool read_library(const struct loaded *loaded, struct library *library) {
    const struct dynamic *dynamic = NULL;
    u64 name = 0;
    for (int i = 0; i < loaded->header_count; i++)
        if (loaded->headers[i].type == PT_DYNAMIC)
            dynamic = (const struct dynamic *)(loaded->base + loaded->headers[i].address);
    *library = (struct library){.base = loaded->base, .name = last_part(loaded->path ? loaded->path : "")};
    for (; dynamic && dynamic->tag; dynamic++) {
        if (dynamic->tag == DT_STRTAB) library->strings = address_in(loaded, dynamic->value);
        if (dynamic->tag == DT_SYMTAB) library->symbols = address_in(loaded, dynamic->value);
        if (dynamic->tag == DT_HASH) library->hash = address_in(loaded, dynamic->value);
        if (dynamic->tag == DT_GNU_HASH) library->gnu_hash = address_in(loaded, dynamic->value);
        if (dynamic->tag == DT_VERSYM) library->versions = address_in(loaded, dynamic->value);
        if (dynamic->tag == DT_SONAME) name = dynamic->value;
    }
    if (library->strings && name) library->name = library->strings + name;
    return library->strings && library->symbols && (library->hash || library->gnu_hash);
}

struct visit {
    bool (*visit)(const struct library *library, void *argument);
    void *argument;
};
static int visit_loaded(struct loaded *loaded, size_t size, void *argument) {
    const struct visit *visit = argument;
    struct library library;
    (void)size;
    return read_library(loaded, &library) && visit->visit(&library, visit->argument);
}

void elf_visit(bool (*visit)(const struct library *library, void *argument), void *argument) {
    struct visit all = {visit, argument};
    if (dl_iterate_phdr) dl_iterate_phdr(visit_loaded, &all);
}

static bool is_function(const struct library *library, u32 index, const char *name) {
    const struct symbol *symbol = (const struct symbol *)library->symbols + index;
    int binding = symbol->info >> 4;
    if ((symbol->info & 15) != STT_FUNC || !symbol->section || !symbol->value) return false;
    if (binding != STB_GLOBAL && binding != STB_WEAK) return false;
    if (library->versions && library->versions[index] & VERSION_HIDDEN) return false;
    return same_text(library->strings + symbol->name, name);
}

/* Table: number of buckets, first symbol, words and shift of the filter; filter; buckets; hashes. */
static u32 find_by_gnu_hash(const struct library *library, const char *name) {
    const u32 *table = library->gnu_hash, *buckets = table + 4 + 2 * table[2], *hashes = buckets + table[0];
    u32 hash = 5381;
    for (const char *at = name; *at; at++) hash = hash * 33 + (u8)*at;
    u32 index = table[0] ? buckets[hash % table[0]] : 0;
    if (index < table[1]) return 0;
    for (;; index++) {
        u32 other = hashes[index - table[1]];
        if ((hash | 1) == (other | 1) && is_function(library, index, name)) return index;
        if (other & 1) return 0;
    }
}

/* Table: number of buckets, number of chains; buckets; chains. */
static u32 find_by_hash(const struct library *library, const char *name) {
    const u32 *table = library->hash, *chains = table + 2 + table[0];
    u32 hash = 0;
    for (const char *at = name; *at; at++) {
        hash = (hash << 4) + (u8)*at;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    u32 index = table[0] ? table[2 + hash % table[0]] : 0;
    while (index && !is_function(library, index, name)) index = chains[index];
    return index;
}

void *elf_function(const struct library *library, const char *name) {
    u32 index = library->gnu_hash ? find_by_gnu_hash(library, name) : find_by_hash(library, name);
    if (!index) return NULL;
    return (void *)(library->base + ((const struct symbol *)library->symbols)[index].value);
}

bool elf_is_own(const struct library *library) { return library->base == (uintptr_t)__ehdr_start; }
