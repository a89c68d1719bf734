/* Which of the container's cards a device of CUDA is. Devices are numbered by CUDA_VISIBLE_DEVICES, so their
 * UUIDs decide. */
#include "cards.h"
#include "driver.h"
#include "ledger.h"
#include "limits.h"
#include "system.h"

#define DEVICES 64

static int card_of_uuid(const u8 *uuid) {
    const struct limits *limits = limits_of_container();
    for (int i = 0; i < limits->count; i++)
        if (limits->cards[i].cuda && same_bytes(limits->cards[i].uuid, uuid, sizeof limits->cards[i].uuid))
            return i;
    return UNLISTED;
}

/* The second version names an instance of MIG, the first one its card. */
static int ask_driver(CUdevice device) {
    u8 uuid[16];
    int card = UNKNOWN_CARD;
    if (HAS(cuDeviceGetUuid_v2) && REAL(cuDeviceGetUuid_v2)(uuid, device) == CUDA_SUCCESS)
        card = card_of_uuid(uuid);
    if (card < 0 && HAS(cuDeviceGetUuid) && REAL(cuDeviceGetUuid)(uuid, device) == CUDA_SUCCESS)
        card = card_of_uuid(uuid);
    return card;
}

int card_of_device(CUdevice device) {
    /* The card plus 3: 0 is a device not asked for yet, or one that the driver did not know. */
    static u8 known[DEVICES];
    if (device < 0 || device >= DEVICES) return ask_driver(device);
    int card = __atomic_load_n(&known[device], __ATOMIC_RELAXED) - 3;
    if (card >= UNLISTED) return card;
    card = ask_driver(device);
    if (card >= UNLISTED) __atomic_store_n(&known[device], (u8)(card + 3), __ATOMIC_RELAXED);
    return card;
}

int card_of_thread(void) {
    CUdevice device;
    if (!HAS(cuCtxGetDevice) || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return UNKNOWN_CARD;
    return card_of_device(device);
}
