/* Which of the container's cards a device of CUDA is. */
#pragma once
#include "types.h"

/* Neither limited nor counted: the driver cannot say which card it is, or whether there is one. */
#define UNKNOWN_CARD (-2)

/* An index of limits.cards, UNLISTED or UNKNOWN_CARD. */
int card_of_device(CUdevice device);

/* Of the device whose context is current in this thread. */
int card_of_thread(void);
