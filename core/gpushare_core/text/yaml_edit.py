"""Edits of a YAML or JSON text that leave every other byte as it is.

The text is parsed only to find positions, which change with each edit. So every function takes a text and
returns a text; files of this kind have a few kilobytes.

Nobody may keep a process busy with such a text: a text that is long, or becomes long when its aliases are
written out, is refused before it is constructed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import yaml

YamlPath = tuple[str | int, ...]
"""Keys and indices from the first document's root, such as ``("spec", "containers", 0)``."""

MAX_CHARACTERS = 128 * 1024
"""Of a text: a long configuration of a scheduler has a fifth of it."""
MAX_VALUES = 50_000
"""Of all documents together, with every alias written out."""
UNREADABLE_YAML = (
    yaml.YAMLError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""Raised by PyYAML for a text that is no YAML, or has tags that do not fit their values."""

_PLAIN = re.compile(r"-{0,2}[\w/][\w./+=@-]*(:[\w./+=@-]+)*")
_BLOCK_SCALAR = ("|", ">")


class YamlEditError(Exception):
    """The text cannot be parsed, or cannot be edited without touching something else."""


class TooLongError(YamlEditError):
    """The text is longer than the limit."""


@dataclass(frozen=True)
class _Line:
    """The line of a position: its start, and the text before the position."""

    start: int
    before: str


def documents(text: str, *, max_characters: int = MAX_CHARACTERS) -> list[Any]:
    """Returns all documents, parsed. Raises ``YamlEditError`` for a text that is no YAML, or too long."""
    readable = _parseable(text, max_characters=max_characters)
    try:
        return list(_constructed(yaml.SafeLoader(readable)))
    except UNREADABLE_YAML as error:
        raise YamlEditError(f"not valid YAML: {_reason(error)}") from error


def first_document(text: str, *, max_characters: int = MAX_CHARACTERS) -> Any:
    """Returns the first document, parsed, or None when the text is empty. Raises as ``documents``.

    The kubelet and kube-scheduler read only the first one.
    """
    parsed = documents(text, max_characters=max_characters)
    return parsed[0] if parsed else None


def insert_item(text: str, path: YamlPath, *, value: Any, index: int | None = None) -> str:
    """Returns the text with ``value`` in the sequence at ``path``, at ``index`` or at the end.

    A missing key is added. The new lines have the style around them: block or flow, indentation, line ends.
    Raises ``YamlEditError`` when no mapping can hold the sequence, or there is something else in its place.
    """
    owner = _mapping(text, path[:-1])
    entry = _entry(owner, path[-1])
    if entry is None:
        return _add_entry(text, owner, key=str(path[-1]), value=value)
    sequence = entry[1]
    if _is_null(sequence):
        return _fill(text, sequence, f"[{_flow(value)}]")
    if not isinstance(sequence, yaml.SequenceNode):
        raise YamlEditError(f"{_dotted(path)} is not a list")
    at = len(sequence.value) if index is None else index
    insert = _insert_flow_item if sequence.flow_style else _insert_block_item
    return insert(text, sequence, at, value)


def insert_entry(text: str, path: YamlPath, *, value: Any) -> str:
    """Returns the text with ``value``, a scalar or a mapping of scalars, under the new key ending ``path``.

    The new lines come last in their mapping and have its style. Raises ``YamlEditError`` when there is no
    mapping, or the key exists.
    """
    owner, key = _node(text, path[:-1]), str(path[-1])
    if _is_null(owner):
        return _fill(text, owner, _flow({key: value}))
    if not isinstance(owner, yaml.MappingNode):
        raise YamlEditError(f"{_dotted(path[:-1])} is not a mapping")
    if _entry(owner, key):
        raise YamlEditError(f"{_dotted(path)} is there already")
    if not owner.value:
        return _replace(text, owner, _flow({key: value}))
    return _append_entry(text, owner, key, value)


def remove_entry(text: str, path: YamlPath) -> str:
    """Returns the text without the last key of ``path`` and its value.

    An empty mapping stays, as ``{}``. Raises ``YamlEditError`` when there is no such key.
    """
    owner = _mapping(text, path[:-1])
    if _entry(owner, path[-1]) is None:
        raise YamlEditError(f"there is no {_dotted(path)}")
    position = [key.value for key, _ in owner.value].index(path[-1])
    key, value = owner.value[position]
    _within(owner, value)
    if len(owner.value) == 1:
        return _remove_only_entry(text, owner, key, value)
    if owner.flow_style:
        return _remove_flow_entry(text, owner, position)
    return _remove_lines(text, _own_line(text, key.start_mark.index), _end_of_lines(text, value))


def replace_scalar(text: str, path: YamlPath, *, value: str) -> str:
    """Returns the text with another string instead of the scalar at ``path``, quoted as the scalar was.

    Raises ``YamlEditError`` when there is no scalar at ``path``.
    """
    node = _node(text, path)
    if not isinstance(node, yaml.ScalarNode):
        raise YamlEditError(f"{_dotted(path)} is not a string")
    present = text[node.start_mark.index : node.end_mark.index]
    if _is_plain(value) and node.value and present.count(node.value) == 1:
        # Tags, anchors and quotes stay.
        return _replace(text, node, present.replace(node.value, value))
    written = _scalar(value, style=node.style)
    return _replace(text, node, written + ("\n" if node.style in _BLOCK_SCALAR else ""))


def remove_item(text: str, path: YamlPath, *, index: int) -> str:
    """Returns the text without one item of the sequence at ``path``.

    An empty block sequence goes with its key. Raises ``YamlEditError`` when there is no sequence at ``path``.
    """
    sequence = _node(text, path)
    if not isinstance(sequence, yaml.SequenceNode):
        raise YamlEditError(f"{_dotted(path)} is not a list")
    if sequence.flow_style:
        return _remove_flow_item(text, sequence, index)
    if len(sequence.value) == 1:
        return _remove_block_entry(text, _key(text, path), sequence)
    item = _item(sequence, index)
    dash = text.rfind("-", 0, item.start_mark.index)
    return _remove_lines(text, _own_line(text, dash), _end_of_lines(text, item))


def _constructed(loader: yaml.SafeLoader) -> Iterator[Any]:
    written_out = 0
    while loader.check_node():
        node: Any = loader.get_node()
        written_out += _values(node, {})
        if written_out > MAX_VALUES:
            raise YamlEditError(f"it has more than {MAX_VALUES} values, its aliases written out; shorten it")
        yield loader.construct_document(node)


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """Returns the number of values in ``node``; those of an alias count each time."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        known[id(node)] = MAX_VALUES  # where it contains itself
        parts = chain.from_iterable(part if isinstance(part, tuple) else (part,) for part in node.value)
        known[id(node)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(node)]


def _parseable(text: str, *, max_characters: int = MAX_CHARACTERS) -> str:
    """Raises ``TooLongError``."""
    if len(text) > max_characters:
        raise TooLongError(f"it is longer than {max_characters // 1024} KiB; shorten it")
    # JSON may be indented with tabs, which the YAML parser refuses; inside JSON strings there are none.
    return text.replace("\t", " ") if text.lstrip().startswith("{") else text


def _reason(error: Exception) -> str:
    """Returns what is wrong, and where; without the lines around it, which may be secrets."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        place = f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
        return f"{error.problem}, {place}"
    return " ".join(str(error).split())


def _dotted(path: YamlPath) -> str:
    return ".".join(str(step) for step in path) or "the document"


def _root(text: str) -> yaml.Node | None:
    readable = _parseable(text)
    try:
        loader = yaml.SafeLoader(readable)
        node: yaml.Node | None = loader.get_node() if loader.check_node() else None
        return node
    except UNREADABLE_YAML as error:
        raise YamlEditError(f"not valid YAML: {_reason(error)}") from error


def _node(text: str, path: YamlPath) -> yaml.Node:
    node = _root(text)
    for step in path:
        node = _child(node, step)
        if node is None:
            raise YamlEditError(f"there is no {_dotted(path)}")
    if node is None:
        raise YamlEditError("the document is empty")
    return node


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return node.value[step] if step < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        entry = _entry(node, step)
        return entry[1] if entry else None
    return None


def _mapping(text: str, path: YamlPath) -> yaml.MappingNode:
    node = _node(text, path)
    if not isinstance(node, yaml.MappingNode):
        raise YamlEditError(f"{_dotted(path)} is not a mapping")
    return node


def _entry(mapping: yaml.MappingNode, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    entries = [entry for entry in mapping.value if entry[0].value == key]
    if len(entries) > 1:
        raise YamlEditError(f"the key {key} stands there {len(entries)} times; leave one of them")
    return entries[0] if entries else None


def _key(text: str, path: YamlPath) -> yaml.Node:
    entry = _entry(_mapping(text, path[:-1]), path[-1])
    if entry is None:
        raise YamlEditError(f"there is no {_dotted(path)}")
    return entry[0]


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _replace(text: str, node: yaml.Node, replacement: str) -> str:
    return text[: node.start_mark.index] + replacement + text[node.end_mark.index :]


def _fill(text: str, null: yaml.Node, written: str) -> str:
    """Returns the text with a list or mapping instead of ``null``.

    Blanks inside the brackets mark, for ``_empty``, that nothing stood there before.
    """
    if null.start_mark.index != null.end_mark.index:
        return _replace(text, null, written)
    space = " " if text[: null.start_mark.index].endswith(":") else ""
    return _replace(text, null, f"{space}{written[0]} {written[1:-1]} {written[-1]}")


def _empty(text: str, collection: yaml.Node, first: yaml.Node) -> str:
    """Returns the text with an empty flow ``collection``, or with nothing in its place if ``_fill`` made
    it."""
    start, end = collection.start_mark.index, collection.end_mark.index
    before = text[:start].removesuffix(" ")
    if text[start + 1 : first.start_mark.index] == " " and before.endswith(":"):
        return before + text[end:]
    return _replace(text, collection, text[start] + text[end - 1])


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line(text: str, position: int) -> _Line:
    start = text.rfind("\n", 0, position) + 1
    return _Line(start=start, before=text[start:position])


def _own_line(text: str, position: int) -> int:
    """Returns the start of the line of ``position``. Raises ``YamlEditError`` when other text is before
    it."""
    line = _line(text, position)
    if line.before.strip("\ufeff "):
        raise YamlEditError(
            f"cannot edit the line {line.before.strip()!r} without changing what it begins with"
        )
    return line.start


def _last_leaf(node: yaml.Node) -> yaml.Node:
    # The end that the parser gives a block collection lies after the comments and blank lines that follow.
    if isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        return _last_leaf(_within(node, last[1] if isinstance(last, tuple) else last))
    return node


def _within(node: yaml.Node, child: yaml.Node) -> yaml.Node:
    # An alias is parsed as the node it stands for, whose place is somewhere before.
    if child.start_mark.index < node.start_mark.index:
        raise YamlEditError("cannot edit beside an alias; write the alias out")
    return child


def _item(sequence: yaml.SequenceNode, index: int) -> yaml.Node:
    return _within(sequence, sequence.value[index])


def _end_of_lines(text: str, node: yaml.Node) -> int:
    """Returns the position after the last line of a node and the comment on that line."""
    leaf = _last_leaf(node)
    if isinstance(leaf, yaml.ScalarNode) and leaf.style in _BLOCK_SCALAR:
        end: int = leaf.end_mark.index
        return end
    newline = text.find("\n", leaf.end_mark.index)
    return len(text) if newline < 0 else newline + 1


def _insert_lines(text: str, position: int, lines: list[str]) -> str:
    newline = _newline(text)
    block = newline.join(lines)
    # After a last line without a line end, the new last line has none either.
    unfinished = position > 0 and text[position - 1] != "\n"
    return text[:position] + (newline + block if unfinished else block + newline) + text[position:]


def _remove_lines(text: str, start: int, end: int) -> str:
    if end == len(text) and not text.endswith("\n"):
        start = len(text[:start].removesuffix("\n").removesuffix("\r"))
    return text[:start] + text[end:]


def _scalar(value: str, *, style: str | None) -> str:
    if style == "'":
        return "'" + value.replace("'", "''") + "'"
    return value if style is None and _is_plain(value) else json.dumps(value)


def _is_plain(value: str) -> bool:
    """Returns whether ``value`` is the same string without quotes, wherever it stands."""
    return bool(_PLAIN.fullmatch(value)) and yaml.safe_load(value) == value


def _flow(value: Any) -> str:
    return json.dumps(value)


def _item_lines(value: Any, *, column: int) -> list[str]:
    if isinstance(value, str):
        return [" " * column + "- " + _scalar(value, style=None)]
    dumped = yaml.safe_dump(value, sort_keys=False, default_flow_style=False, width=1 << 16)
    lines = dumped.splitlines()
    return [" " * column + ("  " if number else "- ") + line for number, line in enumerate(lines)]


def _insert_block_item(text: str, sequence: yaml.SequenceNode, index: int, value: Any) -> str:
    if index:
        position = _end_of_lines(text, _item(sequence, index - 1))
    else:
        position = _own_line(text, sequence.start_mark.index)
    return _insert_lines(text, position, _item_lines(value, column=sequence.start_mark.column))


def _insert_flow_item(text: str, sequence: yaml.SequenceNode, index: int, value: Any) -> str:
    items = sequence.value
    if not items:
        return _replace(text, sequence, f"[{_flow(value)}]")
    neighbour = _item(sequence, max(index - 1, 0))
    gap = _flow_gap(text, neighbour)
    if index == 0:
        start = neighbour.start_mark.index
        return f"{text[:start]}{_flow(value)},{gap}{text[start:]}"
    end = neighbour.end_mark.index
    return f"{text[:end]},{gap}{_flow(value)}{text[end:]}"


def _flow_gap(text: str, neighbour: yaml.Node) -> str:
    """Returns the text between two items: line end and indentation where every item has its own line."""
    before = _line(text, neighbour.start_mark.index).before
    return " " if before.strip() else _newline(text) + before


def _add_entry(text: str, mapping: yaml.MappingNode, *, key: str, value: Any) -> str:
    if not mapping.value:
        return _replace(text, mapping, _flow({key: [value]}))
    if mapping.flow_style:
        return _append_entry(text, mapping, key, [value])
    column = mapping.start_mark.column
    items = _item_lines(value, column=column + _list_offset(mapping))
    return _insert_lines(text, _end_of_lines(text, mapping), [" " * column + f"{key}:", *items])


def _list_offset(mapping: yaml.MappingNode) -> int:
    """Returns the indentation of lists in this mapping below their keys; 0 where it has no lists."""
    for key, value in mapping.value:
        if isinstance(value, yaml.SequenceNode) and not value.flow_style:
            offset: int = value.start_mark.column - key.start_mark.column
            return max(0, offset)
    return 0


def _remove_flow_item(text: str, sequence: yaml.SequenceNode, index: int) -> str:
    items = sequence.value
    if len(items) == 1:
        return _empty(text, sequence, items[0])
    if index == 0:
        return text[: _item(sequence, 0).start_mark.index] + text[_item(sequence, 1).start_mark.index :]
    return text[: _item(sequence, index - 1).end_mark.index] + text[_item(sequence, index).end_mark.index :]


def _append_entry(text: str, mapping: yaml.MappingNode, key: str, value: Any) -> str:
    if mapping.flow_style:
        last_key, last = mapping.value[-1]
        end = _within(mapping, last).end_mark.index
        return f"{text[:end]},{_flow_gap(text, last_key)}{_flow(key)}: {_flow(value)}{text[end:]}"
    indent = " " * mapping.start_mark.column
    dumped = yaml.safe_dump({key: value}, sort_keys=False, default_flow_style=False, width=1 << 16)
    return _insert_lines(text, _end_of_lines(text, mapping), [indent + line for line in dumped.splitlines()])


def _remove_flow_entry(text: str, mapping: yaml.MappingNode, position: int) -> str:
    entries = mapping.value
    if position == 0:
        return text[: entries[0][0].start_mark.index] + text[entries[1][0].start_mark.index :]
    before = _within(mapping, entries[position - 1][1])
    return text[: before.end_mark.index] + text[_within(mapping, entries[position][1]).end_mark.index :]


def _remove_only_entry(text: str, mapping: yaml.MappingNode, key: yaml.Node, value: yaml.Node) -> str:
    if mapping.flow_style:
        return _empty(text, mapping, key)
    line = _line(text, key.start_mark.index)
    if line.before.strip():
        raise YamlEditError(f"cannot remove {key.value} without changing the line that it stands on")
    end = _end_of_lines(text, value)
    owner = text[: line.start].rstrip("\n").removesuffix("\r")
    if not owner.endswith(":"):
        raise YamlEditError(f"cannot remove {key.value}: write {{}} in its place by hand")
    return owner + " {}" + _newline(text) + text[end:]


def _remove_block_entry(text: str, key: yaml.Node, sequence: yaml.SequenceNode) -> str:
    end = _end_of_lines(text, sequence)
    line = _line(text, key.start_mark.index)
    if not line.before.strip():
        return _remove_lines(text, line.start, end)
    # The key shares its line with the dash of a list item, which has to stay.
    colon = text.index(":", key.end_mark.index) + 1
    return text[:colon] + " []" + _newline(text) + text[end:]
