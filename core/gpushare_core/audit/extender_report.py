"""What an extender reports of its ledger: the nodes on which it differs from the other books that it sees.

A report is an annotation of the Lease ``gpushare-extender-books``, one for each extender, so that none
overwrites another's. Without differences there is no annotation. An extender renews its report as long as it
holds; the report of an extender that is gone expires.
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
"""After which an extender writes its report again."""
BELIEVED_FOR = timedelta(minutes=5)
"""Since it was written."""
MAX_SENTENCES = 20
"""Nodes with a sentence; the others are named only."""
MAX_SENTENCE = 600
"""Characters."""
MAX_BYTES = 32 * 2**10
"""Of a report, which names as many nodes as fit, by name: all annotations of an object have room for 256 KiB,
and the API server refuses more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderReport:
    by: str
    """The extender's identity: host and a number for the start."""
    at: datetime
    """When the report was written, by the clock of the extender's host."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Node -> a sentence about its first difference; empty where there was no room for one."""

    def seconds_left(self, now: datetime) -> float:
        """Returns for how long the report is valid; 0 when it is too old.

        Clocks differ: a report from the future is valid no longer than one of this moment.
        """
        left = (self.at - now).total_seconds() + BELIEVED_FOR.total_seconds()
        return max(0.0, min(left, BELIEVED_FOR.total_seconds()))


class _Written(msgspec.Struct, omit_defaults=True):
    by: str
    at: str
    nodes: dict[str, str] = {}


def report_key(identity: str) -> str:
    """Returns the annotation's key, which is the same for all extenders on a host, one after another."""
    host = identity.rpartition("_")[0] or identity
    return f"{BOOKS_ANNOTATION_PREFIX}{hashlib.sha256(host.encode()).hexdigest()[:16]}"


def make_report(differences: Iterable[Difference], *, by: str, at: datetime) -> ExtenderReport:
    """Returns a report with the first difference of each node."""
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
    """Yields as many of ``sentences`` as fit ``room`` bytes."""
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
    """Returns annotation -> report, without what is no report."""
    return {
        key: report
        for key, text in annotations.items()
        if key.startswith(BOOKS_ANNOTATION_PREFIX) and (report := _decoded(text))
    }


def _decoded(text: str) -> ExtenderReport | None:
    try:
        written = msgspec.json.decode(text, type=_Written)
    except UNREADABLE_JSON:
        return None
    at = read_rfc3339(written.at)
    if at is None:
        return None
    return ExtenderReport(by=written.by, at=at, nodes=written.nodes)
