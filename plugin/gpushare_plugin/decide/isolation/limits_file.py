"""The file of limits that a container with the hook reads, and the name that follows from it."""

import hashlib
import re
from array import array
from collections.abc import Sequence

from gpushare_plugin.decide.isolation.kind import CardLimit, GrantedMemory

MAX_FILE = 64 * 1024
"""Bytes: a node has at most 64 cards."""
_HEAD = re.compile(r"container ([0-9a-f]{32})\ncontext ([0-9]{1,20})\n", re.ASCII)
_LINE = re.compile(r"([^\s]{1,64}) ([0-9]{1,20})\n", re.ASCII)


def identity_of(numbers: Sequence[int], limits: Sequence[CardLimit], context_memory: int) -> str:
    """Returns 32 hexadecimal digits that follow from the numbers of a container's units and from its limits
    alone. ``numbers`` ascend.

    Units belong to one container while they are held: Allocate may be repeated, and gives the same.
    """
    lines = [f"context={context_memory}", *(f"{limit.uuid}={limit.memory}" for limit in limits)]
    digest = hashlib.sha256("\n".join(lines).encode() + b"\0")
    digest.update(array("I", numbers).tobytes())
    return digest.hexdigest()[:32]


def limits_file(granted: GrantedMemory) -> tuple[str, bytes]:
    """Returns the identity and the content of its file."""
    identity = identity_of(granted.numbers, granted.limits, granted.context_memory)
    lines = [
        f"container {identity}",
        f"context {granted.context_memory}",
        *(f"{limit.uuid} {limit.memory}" for limit in granted.limits),
    ]
    return identity, "".join(f"{line}\n" for line in lines).encode("ascii")


def read_limits(content: bytes, identity: str, numbers: "array[int]") -> GrantedMemory | None:
    """Returns what the ``content`` of the file of ``identity`` says, or None where it is not as it was
    written for the container that has the units ``numbers``."""
    text = content[:MAX_FILE].decode("ascii", errors="replace")
    head = _HEAD.match(text)
    if head is None or head[1] != identity:
        return None
    limits = [CardLimit(uuid=line[1], memory=int(line[2])) for line in _LINE.finditer(text, head.end())]
    granted = GrantedMemory(numbers=numbers, limits=tuple(limits), context_memory=int(head[2]), folder="")
    return granted if limits_file(granted) == (identity, content) else None
