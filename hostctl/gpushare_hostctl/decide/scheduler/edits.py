"""Edits of somebody else's YAML, each made twice: in the text by splicing, and in the same parsed.

Unless both results are equal the edit would have touched something else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpushare_core.text import yaml_edit
from gpushare_core.text.json_object import Json
from gpushare_core.text.yaml_edit import YamlPath


@dataclass(frozen=True, kw_only=True)
class AddEntry:
    """A new key, the last of ``path``, in a mapping that is there or null."""

    path: YamlPath
    value: Any

    def in_text(self, text: str) -> str:
        return yaml_edit.insert_entry(text, self.path, value=self.value)

    def in_document(self, document: Json) -> None:
        *owner, key = self.path
        _at(document, owner, missing={})[key] = _copied(self.value)


@dataclass(frozen=True, kw_only=True)
class AddItem:
    """A new item of the list at ``path``, which may be missing: at ``index``, or at the end."""

    path: YamlPath
    value: Any
    index: int | None = None

    def in_text(self, text: str) -> str:
        return yaml_edit.insert_item(text, self.path, value=self.value, index=self.index)

    def in_document(self, document: Json) -> None:
        items = _at(document, self.path, missing=[])
        items.insert(len(items) if self.index is None else self.index, _copied(self.value))


@dataclass(frozen=True, kw_only=True)
class Replace:
    """Another string at ``path``."""

    path: YamlPath
    value: str

    def in_text(self, text: str) -> str:
        return yaml_edit.replace_scalar(text, self.path, value=self.value)

    def in_document(self, document: Json) -> None:
        *owner, key = self.path
        _at(document, owner)[key] = self.value


@dataclass(frozen=True, kw_only=True)
class RemoveItem:
    path: YamlPath
    index: int

    def in_text(self, text: str) -> str:
        return yaml_edit.remove_item(text, self.path, index=self.index)

    def in_document(self, document: Json) -> None:
        del _at(document, self.path)[self.index]


@dataclass(frozen=True, kw_only=True)
class RemoveEntry:
    path: YamlPath

    def in_text(self, text: str) -> str:
        return yaml_edit.remove_entry(text, self.path)

    def in_document(self, document: Json) -> None:
        *owner, key = self.path
        del _at(document, owner)[key]


Edit = AddEntry | AddItem | Replace | RemoveItem | RemoveEntry


def edited_text(text: str, edits: Iterable[Edit]) -> str:
    """Raises ``YamlEditError`` when something else is in the way."""
    for edit in edits:
        text = edit.in_text(text)
    return text


def edited_document(document: Json, edits: Iterable[Edit]) -> Json:
    """Returns a changed copy of ``document``."""
    changed: Json = _copied(document)
    for edit in edits:
        edit.in_document(changed)
    return changed


def _at(document: Any, path: Iterable[str | int], *, missing: Any = None) -> Any:
    """Returns what is at ``path``; ``missing`` is put there instead of nothing."""
    *owner, last = path
    for step in owner:
        document = document[step]
    if missing is not None and isinstance(document, dict) and document.get(last) is None:
        document[last] = missing
    return document[last]


def _copied(value: Any) -> Any:
    """What YAML shares by an alias is not shared by the copy."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
