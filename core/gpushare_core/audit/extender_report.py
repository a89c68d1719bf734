"""What an extender makes known of its ledger: on which nodes it differs from the other books that it sees.

It is an annotation of the Lease ``gpushare-extender-books``, one for each extender, so that none overwrites
another's. While nothing differs there is none. An extender renews its own while it stands: one that is gone
does not, and is believed no longer.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from gpushare_core.api.names import BOOKS_ANNOTATION_PREFIX
from gpushare_core.api.timestamps import read_rfc3339, rfc3339
from gpushare_core.audit.difference import Difference
from gpushare_core.text.json_object import UNREADABLE_JSON

RENEW_SECONDS = 120.0
"""After which an extender writes again what stands still."""
BELIEVED_FOR = timedelta(minutes=5)
"""From when it was written."""
MAX_SENTENCES = 20
"""Nodes of which a sentence is told."""
MAX_SENTENCE = 600
"""Characters."""
MAX_BYTES = 32 * 2**10
"""Bytes of a report: the annotations of one object have room for 256 KiB, and each extender has one. Beyond
them the API server would take none. So the first nodes by name are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderReport:
    """What one extender said."""

    by: str
    """Its identity: host and a number for the start."""
    at: datetime
    """When it was written, by its host's clock."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Node -> a sentence about its first difference; empty where there was no room for one."""

    def seconds_left(self, now: datetime) -> float:
        """Returns for how long the report is believed from ``now`` on; nothing of one that is too old.

        Clocks differ: one from the future is believed no longer than one of this moment.
        """
        left = (self.at - now).total_seconds() + BELIEVED_FOR.total_seconds()
        return max(0.0, min(left, BELIEVED_FOR.total_seconds()))


class _Written(msgspec.Struct, omit_defaults=True):
    by: str
    at: str
    nodes: dict[str, str] = {}


def report_key(identity: str) -> str:
    """Returns the annotation of an extender: the next one on the same host has the same."""
    host = identity.rpartition("_")[0] or identity
    return f"{BOOKS_ANNOTATION_PREFIX}{hashlib.sha256(host.encode()).hexdigest()[:16]}"


def make_report(differences: Iterable[Difference], *, by: str, at: datetime) -> ExtenderReport:
    """Returns a report about ``differences``, of each node the first."""
    by_node: dict[str, list[Difference]] = {}
    for difference in differences:
        by_node.setdefault(difference.node, []).append(difference)
    sentences = {
        name: _sentence(by_node[name]) if place < MAX_SENTENCES else ""
        for place, name in enumerate(sorted(by_node))
    }
    return ExtenderReport(by=by, at=at, nodes=dict(_within(sentences, MAX_BYTES - _size(by, rfc3339(at)))))


def _sentence(differences: list[Difference]) -> str:
    more = len(differences) - 1
    return differences[0].sentence[:MAX_SENTENCE] + (f" (and {more} more there)" if more else "")


def _within(sentences: Mapping[str, str], room: int) -> Iterator[tuple[str, str]]:
    """Yields as many of ``told`` as take ``room`` bytes."""
    for node, sentence in sentences.items():
        room -= _size(node, sentence)
        if room < 0:
            return
        yield node, sentence


def _size(*texts: str) -> int:
    """Returns more bytes than ``texts`` take with their names and all that is between them."""
    return sum(len(msgspec.json.encode(text)) + 16 for text in texts)


def encode_report(report: ExtenderReport) -> str:
    written = _Written(report.by, rfc3339(report.at), dict(report.nodes))
    return msgspec.json.encode(written).decode()


def decode_reports(annotations: Mapping[str, str]) -> dict[str, ExtenderReport]:
    """Returns annotation -> report; what is none of ours is left out."""
    found = {
        key: _decoded(text) for key, text in annotations.items() if key.startswith(BOOKS_ANNOTATION_PREFIX)
    }
    return {key: report for key, report in found.items() if report}


def _decoded(text: str) -> ExtenderReport | None:
    try:
        written = msgspec.json.decode(text, type=_Written)
    except UNREADABLE_JSON:
        return None
    at = read_rfc3339(written.at)
    if at is None:
        return None
    return ExtenderReport(by=written.by, at=at, nodes=written.nodes)
