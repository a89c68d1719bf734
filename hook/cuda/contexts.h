/* Contexts: each counts as many bytes as the limits file says, and allocations end with theirs. */
#pragma once
#include "types.h"

/* The owner of what ends with the primary context of its card, or with one that cuCtxCreate did not make. */
#define PRIMARY 0

/* The owner of what this thread allocates on CARD. Counts the card's primary context where no call of the
 * program was seen to make it. False: there is no room for that. */
bool contexts_use(int card, u32 *owner);

void contexts_forget(void); /* in a child by fork */
