"""What the driver's Xid messages mean, for people. Source: NVIDIA's "XID Errors" guide."""

from collections.abc import Mapping

_RESET = "let its pods end and run `nvidia-smi --gpu-reset` for it on the node, or reboot the node"
_REPLACE = "reboot the node; have the card replaced if it comes again"

XIDS: Mapping[int, tuple[str, str]] = {
    13: ("graphics engine exception", "look at the application"),
    31: ("memory page fault", "look at the application"),
    32: ("corrupted push buffer", _RESET),
    38: ("driver firmware error", _RESET),
    43: ("stopped processing", "look at the application"),
    44: ("graphics engine fault during context switch", _RESET),
    45: ("preemptive cleanup after an earlier error", "look at the messages before it"),
    46: ("it stopped processing", _RESET),
    48: ("double-bit ECC error", _RESET),
    56: ("display engine error", _RESET),
    57: ("error programming the video memory interface", _REPLACE),
    58: ("unstable video memory interface", _REPLACE),
    61: ("internal micro-controller breakpoint", _RESET),
    62: ("internal micro-controller halt", _RESET),
    63: ("a page or row of its memory was remapped or retired", _RESET),
    64: ("a page or row of its memory could not be remapped or retired", _REPLACE),
    68: ("video processor exception", "look at the application"),
    69: ("graphics engine class error", "look at the application"),
    74: ("NVLink error", "look at the links and their bridges; " + _RESET),
    78: ("virtual GPU start error", _RESET),
    79: ("it has fallen off the bus", "look at its power, heat and seat; " + _REPLACE),
    92: ("high rate of single-bit ECC errors", _RESET),
    94: ("contained memory error: the application that met it ends", "end its pods; " + _RESET),
    95: ("uncontained memory error: every application on it may be hit", _RESET),
    109: ("context switch timeout", "look at the application"),
    110: ("security fault", _REPLACE),
    119: ("its system processor (GSP) does not answer", _RESET),
    120: ("its system processor (GSP) failed", _RESET),
    121: ("error on the link between chips", _RESET),
    122: ("error reading its SPI memory", _REPLACE),
    140: ("unrecovered ECC error", _RESET),
    143: ("it could not be initialised", _RESET),
    **dict.fromkeys(range(144, 151), ("NVLink error", _RESET)),
    154: ("the driver asks for a recovery action", "see `nvidia-smi -q`, GPU Recovery Action"),
}
"""Xid -> what has happened, and what to do."""


def xid_message(xid: int) -> str:
    unknown = ("an error of the card or its driver", _RESET)
    what, advice = XIDS.get(xid, unknown)
    return f"Xid {xid}, {what}: {advice}"
