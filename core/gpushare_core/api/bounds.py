"""What the API server checks: how long the texts of a status are, of which characters, and rules in CEL.

Programs that write a status keep within these bounds. They read a status as it is: an object may have been
stored before there were bounds, and the API server lets such a value stay for as long as nobody changes it.
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


def text(length: int, pattern: str = PRINTABLE) -> dict[str, Any]:
    """Returns what a CRD says of a text of at most ``length`` characters."""
    return {"maxLength": length, "pattern": pattern}


def items(number: int) -> dict[str, Any]:
    return {"maxItems": number}


def map_by(key: str, number: int) -> dict[str, Any]:
    """Returns what a CRD says of a list of at most ``number`` objects, no two with the same ``key``."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key], **items(number)}


def rule(expression: str, message: str) -> dict[str, str]:
    """Returns one CEL rule of a CRD (``x-kubernetes-validations``)."""
    return {"rule": expression, "message": message}


def rules(*checks: dict[str, str]) -> dict[str, Any]:
    return {"x-kubernetes-validations": [dict(sorted(check.items())) for check in checks]}


UUID = text(63, CARD_UUID)
MESSAGE = text(MESSAGE_BYTES)
_QUANTITY = rule(
    r"self.matches('^[0-9]+([.][0-9]+)?([kMGTP]|[KMGTP]i)?$')",
    "must be a quantity of memory such as 16Gi, 512Mi or 100M",
)
QUANTITY_RULE = rules(_QUANTITY)


def quantity_up_to(most: str, field: str) -> dict[str, Any]:
    """Returns what a CRD says of the quantity in ``field``, which ``most`` bounds."""
    at_most = f"!isQuantity(self) || quantity(self).compareTo(quantity('{most}')) <= 0"
    return rules(_QUANTITY, rule(at_most, f"{field} must be {most} at most"))
