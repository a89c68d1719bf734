/* What is in use: part of stub.c. */
#define INSUFFICIENT_SIZE 7
#define ARGUMENT_VERSION_MISMATCH 25

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct process {
    unsigned pid;
    unsigned long long used;
    unsigned instance, compute;
};

static unsigned long long used_of(int index) {
    char line[512];
    int at;
    unsigned long long bytes, used = 0;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control))
        if (sscanf(line, "used %d %llu", &at, &bytes) == 2 && at == index) used = bytes;
    if (control) fclose(control);
    return used;
}

/* As the driver: with too little room only the number of processes. */
static int list(int index, const char *kind, unsigned *count, struct process *into) {
    char line[512], name[16];
    int at;
    unsigned pid, found = 0;
    long long bytes;
    FILE *control = open_control();
    while (control && fgets(line, sizeof line, control))
        if (sscanf(line, "process %d %15s %u %lld", &at, name, &pid, &bytes) == 4 && at == index &&
            !strcmp(name, kind)) {
            if (into && found < *count)
                into[found] = (struct process){pid, (unsigned long long)bytes, ~0u, ~0u};
            found++;
        }
    if (control) fclose(control);
    int fits = found <= *count;
    *count = found;
    return fits ? OK : INSUFFICIENT_SIZE;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    struct card card;
    for (int index = 0; index < find(-2, NULL); index++) {
        find(index, &card);
        if (!strcmp(card.uuid, uuid)) {
            BEGIN(index);
            *device = (void *)(long)(index + 1);
            return OK;
        }
    }
    return INVALID_ARGUMENT;
}
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory) {
    CARD(device);
    if (memory->version != (sizeof *memory | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    memory->total = card.memory;
    memory->reserved = 1;
    memory->used = used_of(index_of(device));
    memory->free = card.memory - memory->used;
    return OK;
}

#define LIST(symbol, kind)                                                                                   \
    EXPORT int symbol(void *device, unsigned *count, struct process *into) {                                 \
        BEGIN(index_of(device));                                                                             \
        return list(index_of(device), kind, count, into);                                                    \
    }
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
