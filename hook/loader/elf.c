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

/* See link.h. */
struct list_entry {
    uintptr_t base;
    const char *path;
    const struct dynamic *dynamic;
    const struct list_entry *next;
};
struct list {
    int version;
    const struct list_entry *first;
};
__attribute__((weak)) extern const struct list _r_debug; /* musl has none */

typedef int visitor(struct loaded *loaded, size_t size, void *argument);
typedef int iterate_function(visitor *visit, void *argument);
__attribute__((weak)) extern iterate_function dl_iterate_phdr;

/* Where the hook itself is loaded; linkers define it. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static const char *last_part(const char *path) {
    const char *part = path;
    for (const char *at = path; *at; at++)
        if (*at == '/') part = at + 1;
    return part;
}

/* glibc has added the base to addresses in the dynamic section, but not in the kernel's own library; musl has
 * not. With the base they are near to the section: no library is larger than this. */
#define LARGEST_LIBRARY (1ULL << 36)

static const void *address_in(uintptr_t base, const struct dynamic *dynamic) {
    u64 distance = dynamic->value - (uintptr_t)dynamic + LARGEST_LIBRARY;
    return (const void *)(distance < 2 * LARGEST_LIBRARY ? dynamic->value : base + dynamic->value);
}

static bool read_library(struct library *library, uintptr_t base, const char *path,
                         const struct dynamic *dynamic) {
    u64 name = 0;
    *library = (struct library){.base = base, .name = last_part(path ? path : "")};
    for (; dynamic && dynamic->tag; dynamic++) {
        if (dynamic->tag == DT_STRTAB) library->strings = address_in(base, dynamic);
        if (dynamic->tag == DT_SYMTAB) library->symbols = address_in(base, dynamic);
        if (dynamic->tag == DT_HASH) library->hash = address_in(base, dynamic);
        if (dynamic->tag == DT_GNU_HASH) library->gnu_hash = address_in(base, dynamic);
        if (dynamic->tag == DT_VERSYM) library->versions = address_in(base, dynamic);
        if (dynamic->tag == DT_SONAME) name = dynamic->value;
    }
    if (library->strings && name) library->name = library->strings + name;
    return library->strings && library->symbols && (library->hash || library->gnu_hash);
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

struct visit {
    bool (*visit)(const struct library *library, void *argument);
    void *argument;
};
static int visit_loaded(struct loaded *loaded, size_t size, void *argument) {
    const struct visit *visit = argument;
    const struct dynamic *dynamic = NULL;
    struct library library;
    (void)size;
    for (int i = 0; i < loaded->header_count; i++)
        if (loaded->headers[i].type == PT_DYNAMIC)
            dynamic = (const struct dynamic *)(loaded->base + loaded->headers[i].address);
    return read_library(&library, loaded->base, loaded->path, dynamic) &&
           visit->visit(&library, visit->argument);
}

/* The C library's own. Programs and sanitizers put theirs before it, which ask dlsym for this one, so would
 * wait for themselves. Read without the loader's lock: the list up to the C library never changes. */
static iterate_function *find_iterate(void) {
    struct library library;
    const struct list_entry *entry = &_r_debug ? _r_debug.first : NULL;
    for (; entry; entry = entry->next)
        if (read_library(&library, entry->base, entry->path, entry->dynamic) &&
            elf_function(&library, "__libc_start_main"))
            return (iterate_function *)elf_function(&library, "dl_iterate_phdr");
    return dl_iterate_phdr;
}

void elf_visit(bool (*visit)(const struct library *library, void *argument), void *argument) {
    static iterate_function *known;
    iterate_function *iterate = __atomic_load_n(&known, __ATOMIC_RELAXED);
    struct visit all = {visit, argument};
    if (!iterate) iterate = find_iterate();
    __atomic_store_n(&known, iterate, __ATOMIC_RELAXED);
    if (iterate) iterate(visit_loaded, &all);
}

bool elf_is_own(const struct library *library) { return library->base == (uintptr_t)__ehdr_start; }
