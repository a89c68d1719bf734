/* Reads texts of limits files from its input and says what the hook would read of each.
 *
 * A text is its length in decimal, a newline, and so many bytes. The answer is a line: "refused", or
 * "IDENTITY CONTEXT" and " BYTES" for each card, "*" before those that no device of CUDA has. */
#include "limits.h"

#include <stdio.h>
#include <stdlib.h>

static void answer(const char *text, size_t length) {
    struct limits limits = {0};
    if (!limits_parse(&limits, text, length)) {
        puts("refused");
        return;
    }
    printf("%s %lu", limits.identity, limits.context);
    for (int i = 0; i < limits.count; i++)
        printf(" %s%lu", limits.cards[i].cuda ? "" : "*", limits.cards[i].bytes);
    puts("");
}

int main(void) {
    size_t length;
    while (scanf("%zu", &length) == 1) {
        getchar();
        /* Exactly as long as the text, so that the sanitizer sees a byte read beyond it. */
        char *text = malloc(length ? length : 1);
        if (!text || fread(text, 1, length, stdin) != length) return 2;
        answer(text, length);
        free(text);
    }
    return 0;
}
