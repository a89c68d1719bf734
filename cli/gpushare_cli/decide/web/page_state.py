"""All that the page shows, and what of it changed since a version that a browser has."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

MAX_REMOVED = 10_000
"""Names of nodes that are gone. A browser that has seen none of these for longer gets all anew."""


@dataclass(slots=True)
class PageState:
    """Of nodes, by name, and of other parts, by name, the JSON and the version in which it changed."""

    version: int = 0
    _rows: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    _removed: dict[str, int] = field(default_factory=dict)
    _parts: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    _oldest: int = 0
    """Since which version it is known what was removed."""
    _encoded: tuple[int, int, bytes] = (-1, -1, b"")
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
            self.version, self._encoded = next_version, (-1, -1, b"")
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

    def changes_since(self, version: int) -> bytes:
        """Returns a JSON object; with ``whole`` it is all there is, and nothing else is there any more."""
        if not self._oldest <= version <= self.version:
            version = 0
        if self._encoded[:2] != (version, self.version):
            self._encoded = version, self.version, self._changes(version)
        return self._encoded[2]

    def _changes(self, version: int) -> bytes:
        rows = b",".join(text for changed, text in self._rows.values() if changed > version)
        removed = b",".join(
            msgspec.json.encode(name) for name, changed in self._removed.items() if changed > version
        )
        parts = b",".join(
            b'"%s":%s' % (name.encode(), text)
            for name, (changed, text) in self._parts.items()
            if changed > version
        )
        return b'{"version":%d,"whole":%s,"nodes":[%s],"removed":[%s],"parts":{%s}}' % (
            self.version,
            b"false" if version else b"true",
            rows,
            b"" if not version else removed,
            parts,
        )
