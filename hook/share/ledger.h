/* What all processes of the container have of each card, in a file that they share.
 *
 * /dev/shm/.gpushare-IDENTITY: a header, then a slot for each process with who it is and its bytes of each
 * card. Each call locks it (flock: it ends with the process), reads all slots and writes
 * the own one. The file is read and written, not mapped: one that somebody cuts short or a full /dev/shm
 * are then errors of calls, and not signals. Where there is no ledger (no /dev/shm, read-only, full, not
 * this file, locks refused), the limit holds for each process by itself.
 *
 * CARD is an index of limits.cards, or UNLISTED: it has limit 0. */
#pragma once
#include "types.h"

#ifndef HOOK_LEDGER_FOLDER
#define HOOK_LEDGER_FOLDER "/dev/shm"
#endif

#define UNLISTED (-1)

/* Counts BYTES of CARD for this process. False: then the container would have more than its limit, and
 * nothing is counted. */
bool ledger_charge(int card, u64 bytes);

/* Counts BYTES in any case: the driver has given them already. False: the container has more than its limit.
 */
bool ledger_charge_anyway(int card, u64 bytes);

void ledger_give_back(int card, u64 bytes);

/* Bytes that the container may still take. */
u64 ledger_available(int card);

void ledger_forget(void); /* in a child by fork */
