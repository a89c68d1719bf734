"""All that the page shows, and what of it changed since a version that a browser has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

MAX_REMOVED = 10_000
"""Names of nodes that are gone. A browser that has seen none of these for longer gets all anew."""


MAX_CHANGES = 2**22
"""Bytes of a message: each page has one of its own until it has read it. Snapshots are compressed."""
PIECE = 2**16
"""Bytes, or a row more."""


@dataclass(slots=True)
class PageState:
    """Of nodes, by name, and of other parts, by name, the JSON and the version in which it changed."""

    version: int = 0
    _rows: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    _removed: dict[str, int] = field(default_factory=dict)
    _parts: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    _oldest: int = 0
    """Since which version it is known what was removed."""
    _encoded: tuple[int, int, bytes | None] = (-1, -1, None)
    """Of the last answer, which others want as well: from and to which version, and the text."""

    def publish(self, rows: Mapping[str, bytes] | None = None, **parts: bytes) -> bool:
        """Takes over what changed, and returns whether anything did. ``rows``: of all nodes; None: as
        before."""
        next_version = self.version + 1
        changed = self._set_rows(rows, next_version) if rows is not None else False
        for name, text in parts.items():
            if name not in self._parts or self._parts[name][1] != text:
                self._parts[name] = next_version, text
                changed = True
        if changed:
            self.version, self._encoded = next_version, (-1, -1, None)
        return changed

    def _set_rows(self, rows: Mapping[str, bytes], version: int) -> bool:
        gone = [name for name in self._rows if name not in rows]
        new = {
            name: text for name, text in rows.items() if name not in self._rows or self._rows[name][1] != text
        }
        for name in gone:
            del self._rows[name]
            self._removed[name] = version
        for name, text in new.items():
            self._rows[name] = version, text
            self._removed.pop(name, None)
        while len(self._removed) > MAX_REMOVED:
            first = next(iter(self._removed))
            self._oldest = max(self._oldest, self._removed.pop(first))
        return bool(gone or new)

    def changes_since(self, version: int) -> bytes | None:
        """Returns a JSON object; None where a snapshot is better: ``version`` is none of this state, what was
        removed since then is forgotten, or more than ``MAX_CHANGES`` has changed."""
        if not max(self._oldest, 1) <= version <= self.version:
            return None
        if self._encoded[:2] != (version, self.version):
            changes = b"".join(self._changes(version)) if self._is_small(version) else None
            self._encoded = version, self.version, changes
        return self._encoded[2]

    def snapshot(self) -> Iterator[bytes]:
        """Yields all there is, a JSON object in pieces: that of a large cluster is tens of megabytes. Later
        changes are not in it."""
        piece: list[bytes] = []
        size = 0
        for part in self._changes(0):
            piece.append(part)
            size += len(part)
            if size >= PIECE:
                yield b"".join(piece)
                piece, size = [], 0
        yield b"".join(piece)

    def _is_small(self, version: int) -> bool:
        rows = sum(len(text) for changed, text in self._rows.values() if changed > version)
        return (
            rows + sum(len(text) for changed, text in self._parts.values() if changed > version)
            <= MAX_CHANGES
        )

    def _changes(self, version: int) -> Iterator[bytes]:
        """What it yields first is taken now, and the rows are not copied: pages read at the same time."""
        rows = [text for changed, text in self._rows.values() if changed > version]
        removed = [name for name, changed in self._removed.items() if changed > version > 0]
        parts = {
            name: msgspec.Raw(text) for name, (changed, text) in self._parts.items() if changed > version
        }
        head = b'{"version":%d,"whole":%s,' % (self.version, b"false" if version else b"true")
        rest = b'"removed":%s,"parts":%s,"nodes":[' % (
            msgspec.json.encode(removed),
            msgspec.json.encode(parts),
        )
        yield head + rest
        for number, row in enumerate(rows):
            if number:
                yield b","
            yield row
        yield b"]}"
