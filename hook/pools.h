/* Pools of memory: a pool counts as much as it has taken from its card, used or kept for later. */
#pragma once
#include "types.h"

/* Counts anew what this process's pools have: it may have fallen with a free or a wait. */
void pools_look(void);

/* Lets pools of CARD free what they keep for later. False: they had nothing of it. */
bool pools_trim(int card);

void pools_forget(void); /* in a child by fork */
