"""What our programs report while all books agree: no alarm, and no writes while nobody acts (pure)."""

from collections.abc import Iterable, Iterator, Mapping

from chaos.quiet import condition
from gpushare_core.api.names import LEDGER_IN_SYNC
from gpushare_core.text.json_object import Json

BOOKS_AGREE = "BooksAgree"
OFF = "no node is shared"
"""Beginning of what a policy says that has no books."""
MAX_WRITES = 1.0
"""Writes a second, of one program to one object: more of them in quiet do not end by themselves."""
LEASES = "/leases/"


def alarms(policies: Iterable[Json], share_nodes: Iterable[Json]) -> Iterator[str]:
    """Yields a sentence for every condition that does not say that the books agree, though they do. A
    GPUShareNode may say Unknown when its node is no longer shared."""
    for policy in policies:
        yield from _not_true(policy, "policy", BOOKS_AGREE)
    for share_node in share_nodes:
        if condition(share_node, LEDGER_IN_SYNC).get("status") == "False":
            yield from _not_true(share_node, "GPUShareNode", LEDGER_IN_SYNC)


def _not_true(item: Json, what: str, kind: str) -> Iterator[str]:
    found = condition(item, kind)
    message = str(found.get("message", ""))
    if found.get("status") != "True" and not message.startswith(OFF):
        says = f"{found.get('status', 'nothing')} ({found.get('reason', 'no condition')}: {message})"
        yield f"all books agree, and {kind} of {what} {item['metadata']['name']} says {says}"


def needless_writes(writes: Mapping[str, int], *, seconds: float) -> Iterator[str]:
    """Yields who wrote to what without pause. ``writes``: by client and object, within so many seconds."""
    for what, times in sorted(writes.items()):
        if LEASES not in what and times > MAX_WRITES * seconds:
            yield f"nobody did anything for {seconds:.0f} s, and {what} came {times} times"
