/* Reads the text of a limits file. Pure: no calls of the kernel, and no memory but its arguments'. */
#include "limits.h"

/* No sum of the limits and of what is in use can overflow; nor can a number with one digit too many. */
#define MOST_BYTES (1ULL << 60)

struct text {
    const char *at, *end;
};

static bool skip(struct text *text, const char *expected) {
    const char *at = text->at;
    for (; *expected; expected++, at++)
        if (at == text->end || *at != *expected) return false;
    text->at = at;
    return true;
}

static int digit_of(char character) {
    if (character >= '0' && character <= '9') return character - '0';
    if (character >= 'a' && character <= 'f') return character - 'a' + 10;
    if (character >= 'A' && character <= 'F') return character - 'A' + 10;
    return -1;
}

static bool read_identity(struct text *text, char *identity) {
    for (int i = 0; i < IDENTITY_LENGTH; i++, text->at++) {
        if (text->at == text->end || digit_of(*text->at) < 0) return false;
        if (*text->at >= 'A' && *text->at <= 'F') return false;
        identity[i] = *text->at;
    }
    identity[IDENTITY_LENGTH] = 0;
    return true;
}

static bool read_bytes(struct text *text, u64 *bytes) {
    const char *first = text->at;
    *bytes = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        *bytes = *bytes * 10 + (u64)(*text->at - '0');
        if (*bytes > MOST_BYTES) return false;
    }
    return text->at > first && (*first != '0' || text->at == first + 1);
}

/* GPU-8-4-4-4-12 hexadecimal digits. */
static bool read_cuda_uuid(const char *name, const char *end, u8 *uuid) {
    static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (end - name != sizeof form - 1) return false;
    int digits = 0;
    for (const char *at = form; *at; at++, name++) {
        if (*at != 'x') {
            if (*name != *at) return false;
            continue;
        }
        int digit = digit_of(*name);
        if (digit < 0) return false;
        uuid[digits / 2] = (u8)(uuid[digits / 2] << 4 | digit);
        digits++;
    }
    return true;
}

static bool read_card(struct text *text, struct limit *card) {
    const char *name = text->at;
    while (text->at < text->end && *text->at > ' ' && *text->at <= '~') text->at++;
    if (text->at == name || text->at - name > LONGEST_UUID) return false;
    card->cuda = read_cuda_uuid(name, text->at, card->uuid);
    return skip(text, " ") && read_bytes(text, &card->bytes) && skip(text, "\n");
}

static bool is_listed(const struct limits *limits, const struct limit *card) {
    for (int i = 0; i < limits->count; i++) {
        const struct limit *other = &limits->cards[i];
        bool same = card->cuda && other->cuda;
        for (int j = 0; j < 16 && same; j++) same = card->uuid[j] == other->uuid[j];
        if (same) return true;
    }
    return false;
}

bool limits_parse(struct limits *limits, const char *content, size_t length) {
    struct text text = {content, content + length};
    limits->count = 0;
    if (!skip(&text, "container ") || !read_identity(&text, limits->identity) || !skip(&text, "\n"))
        return false;
    if (!skip(&text, "context ") || !read_bytes(&text, &limits->context) || !skip(&text, "\n")) return false;
    while (text.at < text.end) {
        if (limits->count == MOST_CARDS) return false;
        struct limit *card = &limits->cards[limits->count];
        if (!read_card(&text, card) || is_listed(limits, card)) return false;
        limits->count++;
    }
    return limits->count > 0;
}
