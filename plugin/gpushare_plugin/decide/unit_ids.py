"""Names of units: three letters each, the shortest that number every unit of a node.

One unit is one device for the kubelet, and the list of all devices must fit one gRPC message.
"""

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
ID_LENGTH = 3
CAPACITY = len(ALPHABET) ** ID_LENGTH
"""How many units a node can have at most."""

_VALUES = {letter: value for value, letter in enumerate(ALPHABET)}


class UnknownUnitError(ValueError):
    """An ID that names no unit."""


def encode_id(number: int) -> str:
    """The ID of unit ``number``, which is from 0 to ``CAPACITY`` - 1."""
    return ALPHABET[number >> 12] + ALPHABET[number >> 6 & 63] + ALPHABET[number & 63]


def decode_id(unit_id: str) -> int:
    """The number that ``encode_id`` was given. Raises ``UnknownUnitError`` for other texts."""
    try:
        first, second, third = tuple(unit_id)
        return _VALUES[first] << 12 | _VALUES[second] << 6 | _VALUES[third]
    except (KeyError, ValueError):
        raise UnknownUnitError(f"{unit_id!r} names no unit") from None
