/* Points at which a test stops a process of the hook. They are in no library that is delivered.
 *
 * With -DHOOK_PAUSE='"FOLDER"' a process that comes to POINT makes the empty file FOLDER/POINT.PID; if
 * FOLDER/POINT is there, the process waits until it is gone. Points:
 *   lock      before the ledger is locked
 *   waiting   the ledger is locked by somebody else (once per call)
 *   summed    the ledger is locked, sums were compared with the limit, nothing is written yet
 */
#pragma once

#ifdef HOOK_PAUSE
void pause_at(const char *point);
#else
static inline void pause_at(const char *point) { (void)point; }
#endif
