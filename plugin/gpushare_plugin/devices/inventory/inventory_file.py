"""The text of an inventory: what it says, and what is wrong with it. Pure.

Root on the node writes it, and a mistake must not do any harm: a text that is not exactly an inventory is
refused as a whole, with the line of the mistake.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from gpushare_core.api.bounds import CARD_UUID
from gpushare_core.api.share_node import CDI_KIND
from gpushare_core.dialects.dialect import CARD_VARIABLE
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.text.yaml_edit import UNREADABLE_YAML
from gpushare_plugin.devices.card import DeviceNode, Equipment, HostMount, PhysicalCard

MAX_BYTES = 256 * 1024
MAX_CARDS = 64
MAX_MEMORY = 16 * 2**40
"""Bytes of one card."""
_MAX_DEPTH = 12
"""Nested lists and mappings; an inventory has five."""

_OURS = CARD_VARIABLE.partition("_")[0] + "_"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InventoryError(Exception):
    """The message says where the mistake is, and what is wrong."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)


def _is_memory(text: str) -> str:
    size = parse_memory(text)
    if not 0 < size <= MAX_MEMORY:
        raise ValueError("a card has more than nothing and at most 16Ti of memory")
    return text


def _is_path(text: str) -> str:
    path = PurePosixPath(text)
    if not text.startswith("/") or ".." in path.parts or "\0" in text or len(path.parts) < 2:
        raise ValueError(f"{text!r} is not an absolute path without '..'")
    return str(path)


def _is_device(text: str) -> str:
    if not text.startswith("/dev/"):
        raise ValueError(f"{text!r} is not below /dev")
    return text


def _is_free_name(name: str) -> str:
    if name.startswith(_OURS):
        raise ValueError(f"variables that begin with {_OURS} are gpushare's")
    return name


def _spelled_out(value: Any) -> Any:
    """A path alone stands for itself on the host and in the container."""
    return {"hostPath": value} if isinstance(value, str) else value


_Path = Annotated[str, Field(max_length=4096), AfterValidator(_is_path)]
_Device = Annotated[_Path, AfterValidator(_is_device)]
_Name = Annotated[str, Field(pattern=CARD_UUID)]
_Variable = Annotated[
    str, Field(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), AfterValidator(_is_free_name)
]
_Variables = Annotated[dict[_Variable, Annotated[str, Field(max_length=4096)]], Field(max_length=64)]


class _InventoryPart(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, frozen=True, extra="forbid", strict=True, hide_input_in_errors=True
    )


class _DeviceNode(_InventoryPart):
    host_path: _Device
    container_path: _Device | None = None
    permissions: Annotated[str, Field(pattern=r"^[rwm]{1,3}$")] = "rw"

    def read(self) -> DeviceNode:
        return DeviceNode(self.host_path, self.container_path or self.host_path, self.permissions)


class _Mount(_InventoryPart):
    host_path: _Path
    container_path: _Path | None = None
    read_only: bool = True

    def read(self) -> HostMount:
        return HostMount(self.host_path, self.container_path or self.host_path, self.read_only)


_DeviceNodes = Annotated[list[Annotated[_DeviceNode, BeforeValidator(_spelled_out)]], Field(max_length=64)]
_Mounts = Annotated[list[Annotated[_Mount, BeforeValidator(_spelled_out)]], Field(max_length=64)]


class _VisibleCards(_InventoryPart):
    variable: _Variable
    by: Literal["UUID", "Index"] = "UUID"


class _EveryContainer(_InventoryPart):
    """What a container gets whichever card it has."""

    device_nodes: _DeviceNodes = []
    mounts: _Mounts = []
    environment: _Variables = {}
    visible_cards: _VisibleCards | None = None


class _InventoryCard(_InventoryPart):
    uuid: _Name
    index: Annotated[int, Field(ge=0, le=1023)] | None = None
    memory: Annotated[str, AfterValidator(_is_memory)]
    model: Annotated[str, Field(max_length=63)] = ""
    compute_score: Annotated[int, Field(ge=0, le=1_000_000)] = 100
    numa_node: Annotated[int, Field(ge=0, le=63)] | None = None
    link_group: Annotated[int, Field(ge=0, le=63)] | None = None
    device_nodes: _DeviceNodes = []
    mounts: _Mounts = []
    visible_as: _Name | None = None
    cdi_name: _Name | None = None


class _HealthFields(_InventoryPart):
    command: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(min_length=1, max_length=32)]
    period_seconds: Annotated[int, Field(ge=5, le=3600)] = 30
    timeout_seconds: Annotated[int, Field(ge=1, le=30)] = 5

    def read(self) -> "HealthCommand":
        period, timeout = float(self.period_seconds), float(self.timeout_seconds)
        return HealthCommand(arguments=tuple(self.command), period=period, timeout=timeout)


class _InventoryFields(_InventoryPart):
    cards: Annotated[list[_InventoryCard], Field(min_length=1, max_length=MAX_CARDS)]
    container: _EveryContainer = _EveryContainer()
    cdi_kind: Annotated[str, Field(max_length=127, pattern=CDI_KIND)] = ""
    health: _HealthFields | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCommand:
    """A program that checks one card. Times in seconds."""

    arguments: tuple[str, ...]
    """With the placeholders ``{uuid}`` and ``{index}``."""
    period: float
    timeout: float

    def for_card(self, card: PhysicalCard) -> tuple[str, ...]:
        values = {"{uuid}": card.uuid, "{index}": str(card.index)}
        return tuple(
            re.sub(r"\{(?:uuid|index)\}", lambda it: values[it[0]], argument) for argument in self.arguments
        )


@dataclass(frozen=True, slots=True)
class Inventory:
    cards: tuple[PhysicalCard, ...]
    """In the order of their index."""
    health: HealthCommand | None = None


def read_inventory(content: bytes) -> Inventory:
    """Raises ``InventoryError``."""
    node = _root(_text(content))
    try:
        written = _InventoryFields.model_validate(_data(node))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise InventoryError(_reason(first["loc"], first["msg"]), _line(node, first["loc"])) from error
    _require_distinct(written, node)
    indexed = [(card.index if card.index is not None else at, card) for at, card in enumerate(written.cards)]
    cards = (_card(card, index, written) for index, card in sorted(indexed, key=lambda pair: pair[0]))
    return Inventory(tuple(cards), written.health.read() if written.health else None)


def _text(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise InventoryError(f"longer than {MAX_BYTES // 1024} KiB: an inventory of 64 cards has 40")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InventoryError("not UTF-8: save the file in that encoding", line) from error


def _root(text: str) -> yaml.Node:
    """Refuses anchors, which could grow without end when they are read, and deep nesting before it parses."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise InventoryError(
                    "anchors and aliases (& and *) are not read: write it out", _line_of(event)
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                raise InventoryError("lists or mappings nest too deep", _line_of(event))
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _yaml_error(error, last=text.count("\n") + 1) from error
    if not isinstance(node, yaml.MappingNode):
        raise InventoryError("not a mapping with cards: see docs/inventory.md", _line_of(node) if node else 1)
    _require_distinct_keys(node)
    return node


def _yaml_error(error: yaml.YAMLError, last: int | None = None) -> InventoryError:
    """``last``: number of the last line, beyond which the reader counts where the end is missing."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    line = mark.line + 1 if mark else 0
    return InventoryError(f"not YAML: {problem}", min(line, last) if last else line)


def _require_distinct_keys(node: yaml.Node) -> None:
    """YAML's reader would take the last of several equal keys."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _require_distinct_keys(item)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise InventoryError("a key must be a word", _line_of(key))
        if key.value in seen:
            raise InventoryError(f"{key.value} is there twice", _line_of(key))
        seen.add(key.value)
        _require_distinct_keys(value)


def _data(node: yaml.Node) -> Any:
    constructor: Any = yaml.constructor.SafeConstructor()
    try:
        return constructor.construct_document(node)
    except yaml.YAMLError as error:
        raise _yaml_error(error) from error
    except UNREADABLE_YAML as error:  # thousands of digits, a date that is none, a tag that fits no value
        raise InventoryError(f"a value cannot be read: {error}") from error


def _reason(location: Iterable[int | str], message: str) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return f"{path.removeprefix('.')}: {message.removeprefix('Value error, ')}"


def _line(node: yaml.Node, location: Sequence[int | str]) -> int:
    """Returns the line of ``location``, or of the innermost part around it that is there."""
    line = _line_of(node)
    for part in location:
        found = _at(node, part)
        if found is None:
            break
        key, node = found
        line = _line_of(key)
    return line


def _at(node: yaml.Node, part: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _line_of(placed: yaml.Node | yaml.Event) -> int:
    mark = placed.start_mark
    return mark.line + 1 if mark else 0


def _require_distinct(written: _InventoryFields, node: yaml.Node) -> None:
    cards = written.cards
    indices = [card.index if card.index is not None else at for at, card in enumerate(cards)]
    _require_different("uuid", [card.uuid for card in cards], node)
    _require_different("index", [str(index) for index in indices], node)
    for at, card in enumerate(cards):
        paths = [*_container_paths(written.container), *_container_paths(card)]
        if twice := next((path for path in paths if paths.count(path) > 1), None):
            reason = f"cards[{at}]: {twice} in the container is given twice"
            raise InventoryError(reason, _line(node, ("cards", at)))


def _require_different(field: str, values: Sequence[str], node: yaml.Node) -> None:
    for at, value in enumerate(values):
        if value in values[:at]:
            first = _line(node, ("cards", values.index(value), field))
            reason = f"cards[{at}].{field}: {value} is that of the card in line {first}"
            raise InventoryError(reason, _line(node, ("cards", at, field)))


def _container_paths(part: _EveryContainer | _InventoryCard) -> Iterator[str]:
    yield from (device_node.read().container_path for device_node in part.device_nodes)
    yield from (mount.read().container_path for mount in part.mounts)


def _card(card: _InventoryCard, index: int, written: _InventoryFields) -> PhysicalCard:
    return PhysicalCard(
        uuid=card.uuid,
        index=index,
        memory=parse_memory(card.memory),
        model=card.model,
        compute_score=card.compute_score,
        numa_node=-1 if card.numa_node is None else card.numa_node,
        link_group=-1 if card.link_group is None else card.link_group,
        equipment=_equipment(card, index, written),
    )


def _equipment(card: _InventoryCard, index: int, written: _InventoryFields) -> Equipment:
    common, visible = written.container, written.container.visible_cards
    names: Mapping[str, str] = {"UUID": card.uuid, "Index": str(index)}
    return Equipment(
        device_nodes=tuple(device_node.read() for device_node in (*common.device_nodes, *card.device_nodes)),
        mounts=tuple(mount.read() for mount in (*common.mounts, *card.mounts)),
        variables=tuple(common.environment.items()),
        runtime_variable=visible.variable if visible else "",
        runtime_name=card.visible_as or (names[visible.by] if visible else ""),
        cdi_kind=written.cdi_kind,
        cdi_name=card.cdi_name or card.uuid,
    )
