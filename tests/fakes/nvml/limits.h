/* Limits on the memory of cgroups: part of stub.c.
 *
 * They are kept in the file "limits" beside the library, a line for each: DEVICE INODE INDEX SOFT HARD, the
 * last one counts. As the driver, the stub knows a cgroup by its folder and not by its name: other processes,
 * and other mounts of it, see the same. Setting a limit takes no privilege here. */
#include <sys/file.h>
#include <sys/stat.h>

#define NOT_SUPPORTED 3
#define NOT_FOUND 6

struct set_limits {
    const char *cgroup;
    unsigned long long soft, hard;
};
struct get_limits {
    const char *cgroup;
    unsigned long long soft, hard, used;
};

static FILE *open_limits(const char *mode) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s", control);
    snprintf(strrchr(path, '/'), 16, "/limits");
    return fopen(path, mode);
}

/* Returns whether the cgroup has a limit itself. */
static int own_limits(const char *cgroup, int index, struct get_limits *into) {
    struct stat folder;
    unsigned long long device, inode, soft, hard;
    int at, found = 0;
    char line[512];
    FILE *limits = stat(cgroup, &folder) ? NULL : open_limits("r");
    while (limits && fgets(line, sizeof line, limits))
        if (sscanf(line, "%llu %llu %d %llu %llu", &device, &inode, &at, &soft, &hard) == 5 && at == index &&
            device == folder.st_dev && inode == folder.st_ino) {
            into->soft = soft;
            into->hard = hard;
            found = soft != 0 || hard != ~0ULL;
        }
    if (limits) fclose(limits);
    return found;
}

static unsigned long long used_by(const char *cgroup, int index) {
    char line[512], name[384];
    int at;
    unsigned long long bytes, used = 0;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control))
        if (sscanf(line, "cgroup %d %llu %383s", &at, &bytes, name) == 3 && at == index &&
            !strcmp(name, cgroup))
            used = bytes;
    if (control) fclose(control);
    return used;
}

EXPORT int nvmlDeviceSetMemoryLimits_v1(void *device, struct set_limits *limits) {
    struct stat folder;
    CARD(device);
    if (card.mig) return NOT_SUPPORTED;
    if (stat(limits->cgroup, &folder)) return NOT_FOUND;
    if (limits->soft > limits->hard) return INVALID_ARGUMENT;
    FILE *kept = open_limits("a");
    if (!kept) return NOT_SUPPORTED;
    flock(fileno(kept), LOCK_EX);
    fprintf(kept, "%llu %llu %d %llu %llu\n", (unsigned long long)folder.st_dev,
            (unsigned long long)folder.st_ino, index_of(device), limits->soft, limits->hard);
    fclose(kept);
    return OK;
}

/* The nearest cgroup with a limit answers, as where the kernel has no controller of the name dmem. */
EXPORT int nvmlDeviceGetMemoryLimits_v1(void *device, struct get_limits *limits) {
    char cgroup[PATH_MAX];
    CARD(device);
    if (card.mig) return NOT_SUPPORTED;
    if (access(limits->cgroup, F_OK)) return NOT_FOUND;
    snprintf(cgroup, sizeof cgroup, "%s", limits->cgroup);
    while (!own_limits(cgroup, index_of(device), limits)) {
        char *end = strrchr(cgroup, '/');
        if (!end || end == cgroup) return NOT_SUPPORTED;
        *end = 0;
    }
    limits->used = used_by(limits->cgroup, index_of(device));
    return OK;
}
