"""JSON of all kinds, right documents with a few things wrong in them, and texts that are no JSON."""

import copy
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

HUGE = 10**4400
"""More digits than Python reads by itself."""

_ODD_TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1e3",
    "1e400",
    "9" * 5000,
    "٣",
    "\N{SUPERSCRIPT TWO}",
    "0x10",
    "NaN",
    "null",
    "\0",
    "a\nb",
    "\N{RIGHT-TO-LEFT OVERRIDE}gpu",
    "\N{PILE OF POO}" * 40,
    "x" * 70_000,
    "../../etc/passwd",
    "$(HOME)",
    "gpushare.io/memory",
    "True",
    "9999-12-31T23:59:59.999999+00:00",
    "0001-01-01T00:00:00",
    "0001-01-01T00:00:00Z",
)
_ODD_NUMBERS = (0, -1, 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**40, 1e308, -0.0, 0.5)

odd_texts = st.sampled_from(_ODD_TEXTS) | st.text(max_size=12)
odd_scalars = st.none() | st.booleans() | st.sampled_from(_ODD_NUMBERS) | st.integers() | odd_texts
odd_values = st.recursive(
    odd_scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd_texts, inner, max_size=4),
    max_leaves=8,
)
"""Values that JSON can hold, those among them that the API would never let pass."""

Path = tuple[str | int, ...]


def paths(document: Any, above: Path = ()) -> list[Path]:
    """Where there is something in ``document``: keys and positions from its root, which comes first."""
    children: Sequence[tuple[str | int, Any]] = ()
    if isinstance(document, dict):
        children = list(document.items())
    elif isinstance(document, list):
        children = list(enumerate(document))
    return [above, *(path for key, child in children for path in paths(child, (*above, key)))]


@st.composite
def mutated(draw: st.DrawFn, document: Any, *, most: int = 3) -> Any:
    """``document`` with up to ``most`` of its values replaced, taken out, repeated or moved."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, most))):
        path = draw(st.sampled_from(paths(changed)))
        changed = _changed(draw, changed, path)
    return changed


def _changed(draw: st.DrawFn, document: Any, path: Path) -> Any:
    if not path:
        return draw(st.just(document) | odd_values)
    owner = document
    for step in path[:-1]:
        owner = owner[step]
    match draw(st.sampled_from(["replace", "replace", "null", "remove", "wrap", "add", "repeat"])):
        case "replace":
            owner[path[-1]] = draw(odd_values)
        case "null":
            owner[path[-1]] = None
        case "remove":
            del owner[path[-1]]
        case "wrap":
            owner[path[-1]] = [owner[path[-1]]]
        case "repeat" if isinstance(owner, list):
            owner.insert(0, copy.deepcopy(owner[int(path[-1])]))
        case _ if isinstance(owner, dict):
            owner[draw(odd_texts)] = draw(odd_values)
    return document


@st.composite
def encoded(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> bytes:
    """``documents`` as bytes, some of them damaged on the way."""
    text = json.dumps(draw(documents), ensure_ascii=draw(st.booleans()))
    return draw(damaged(text.encode("utf-8", "surrogatepass")))


_INSERTED = (
    b"",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b'"',
    b"{",
    b"}",
    b"[" * 3000,
    b",",
    b"NaN",
    b"1e999",
    b"\\ud800",
    b"9" * 5000,
    b"\n",
)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """``content``, most of the time with something cut, inserted, or said twice."""
    place = draw(st.integers(0, len(content)))
    end = draw(st.integers(place, min(len(content), place + 40)))
    match draw(st.sampled_from(["whole", "whole", "cut", "insert", "replace", "twice", "part twice"])):
        case "cut":
            return content[:place]
        case "insert":
            return content[:place] + draw(st.sampled_from(_INSERTED)) + content[place:]
        case "replace":
            return content[:place] + draw(st.binary(max_size=6)) + content[end:]
        case "twice":
            return content + content
        case "part twice":
            return content[:end] + content[place:]
    return content


def nested(levels: int, *, inside: bytes = b"") -> bytes:
    """Lists in lists."""
    return b"[" * levels + inside + b"]" * levels
