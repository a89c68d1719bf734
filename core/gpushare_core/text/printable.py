"""Text for people: it moves no cursor, begins no line and reads in one direction."""

import re

MESSAGE_BYTES = 32 * 1024
"""Of a condition's message. Source: ``metav1.Condition``."""
REFUSAL_BYTES = 1024
"""Of the reason of a refusal: gRPC has it in a header, and the kubelet puts it into the status of a pod."""
CUT = "..."

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff]"  # halves of characters, which no encoding takes
)
_HALF_AN_ESCAPE = re.compile(r"\\(u[0-9a-f]{0,3})?$")


def printable(text: str, *, max_bytes: int | None = None) -> str:
    """Returns ``text`` with characters that control a terminal, or hide others, written as ``\\u001b``.

    1. Text of more than ``max_bytes`` in UTF-8 is cut, and ends with ``CUT``.
    2. Printable text stays as it is. JSON stays the same JSON: its strings mean the same in either form.
    """
    shown = text if text.isprintable() else _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    if max_bytes is None or len(shown) * 4 <= max_bytes:
        return shown
    encoded = shown.encode()
    if len(encoded) <= max_bytes:
        return shown
    kept = encoded[: max_bytes - len(CUT)].decode(errors="ignore")
    return _HALF_AN_ESCAPE.sub("", kept) + CUT


def printable_lines(text: str) -> str:
    """As ``printable``, with line feeds: for text whose lines the program itself has made."""
    return "\n".join(map(printable, text.split("\n")))
