"""Of how many characters, and of which, the texts of a status are: the API server takes no others.

Programs that write a status keep within them. They read what is there as it is: an object that was stored
before there were bounds has to be understood still, and the API server lets such a value stay for as long as
nobody changes it.
"""

import re
from typing import Any

from gpushare_core.text.printable import MESSAGE_BYTES

CARD_UUID = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$"
"""What names a card, or is a name for it to a container runtime."""
PRINTABLE = (
    r"^[^\x00-\x1f\x7f-\x9f\x{061c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]*$"  # Go's syntax
)
"""What ``printable`` leaves."""
CONDITION_TYPE = (
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
CONDITION_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
"""Both as ``metav1.Condition`` has them."""

WORD, UNIT, QUANTITY, TIME = 63, 128, 32, 64
MODEL, UID, NAME = 256, 128, 253
FAULT_MESSAGE, HEALTH_REASON = 2048, 4096
"""The second says besides when the card returns."""
SUMMARY, UNITS = 32 * 1024, 4096
"""Of the cards of a node; of the kinds of units of a policy."""
CARD_SUMMARY, VERSIONS = 512, 1024
"""Of one card; of one program."""
CONDITIONS, CARDS, RESOURCES = 64, 4096, 16
SHARES = 16 * 1024
"""On one card. More of anything than these does not fit in an object."""

_CARD_UUID = re.compile(CARD_UUID)


def is_card_uuid(text: str) -> bool:
    return _CARD_UUID.fullmatch(text) is not None


def text(most: int, pattern: str = PRINTABLE) -> dict[str, Any]:
    """Returns what a CRD says of a text of at most that many characters."""
    return {"maxLength": most, "pattern": pattern}


def items(most: int) -> dict[str, Any]:
    return {"maxItems": most}


UUID = text(63, CARD_UUID)
MESSAGE = text(MESSAGE_BYTES)
