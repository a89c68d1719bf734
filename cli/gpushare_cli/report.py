"""What a command found: whole in JSON and YAML, in part in a table."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import ClassVar

import msgspec

API_VERSION = "cli.gpushare.io/v1alpha1"
"""Of every document that a command prints. A field is never renamed or removed within a version."""


class ExitStatus(IntEnum):
    GOOD = 0
    NO = 1
    """The answer is no: something is wrong, does not fit, or is left."""
    CANNOT_LOOK = 2
    """Something that was asked for could not be read, or the arguments make no sense."""
    INTERRUPTED = 130
    READER_GONE = 141
    """As of every program that SIGPIPE ends: whoever read the output has read enough."""


class CommandReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all reports. A report holds values alone, all that the command found."""

    kind: ClassVar[str] = ""
    """Of the document, such as ``CardInspection``."""

    @property
    def names(self) -> Sequence[str]:
        """What ``-o name`` prints, a line each: a resource and a name, as kubectl takes them."""
        return ()

    @property
    def exit_status(self) -> ExitStatus:
        return ExitStatus.GOOD

    @property
    def fields(self) -> Mapping[str, object]:
        """By their names in a document, whose kind comes first."""
        fields = {field.encode_name: getattr(self, field.name) for field in msgspec.structs.fields(self)}
        return {"apiVersion": API_VERSION, "kind": self.kind, **fields}
