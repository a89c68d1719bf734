"""Characters that a terminal obeys, or that make text look like another one."""

_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SEPARATORS = (0x2028, 0x2029)

WRITABLE = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), *_DIRECTIONS, *_SEPARATORS)))
"""Those that an encoding takes: JSON and YAML bring no others."""
HIDDEN = f"{WRITABLE}\ud800\udfff"


def hidden_in(text: str, *, but: str = "") -> set[str]:
    """Returns which of them are in ``text``, without those of ``but``."""
    return {*text} & {*HIDDEN} - {*but}
