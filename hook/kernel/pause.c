/* Points at which a test stops a process of the hook. */
#include "pause.h"
#include "system.h"

#ifdef HOOK_PAUSE
void pause_at(const char *point) {
    char path[256], marker[256];
    char *end = append_text(append_text(append_text(path, HOOK_PAUSE), "/"), point);
    *end = 0;
    end = append_text(append_text(marker, path), ".");
    append_number(end, (u64)CALL1(getpid, 0));
    CALL1(close, CALL4(openat, HERE, marker, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    while (CALL3(faccessat, HERE, path, 0) == 0) sleep_nanoseconds(1000000);
}
#endif
