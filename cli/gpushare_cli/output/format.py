"""The formats of ``-o``: what is printed of a report."""

import json
from enum import StrEnum

import msgspec

from gpushare_cli.report import API_VERSION, CommandReport


class Format(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"

    @classmethod
    def _missing_(cls, value: object) -> "Format | None":
        """``text`` is what ``audit`` called its table before the others had formats."""
        return cls.TABLE if value == "text" else None


def document_text(report: CommandReport, chosen: Format) -> str:
    """Returns the text of a format for programs, which ends with a line feed."""
    if chosen is Format.NAME:
        return "".join(f"{name}\n" for name in report.names)
    if chosen is Format.JSON:
        return f"{_json_text(report)}\n"
    import yaml  # for this format alone: it takes as long as the rest of the start

    text: str = yaml.safe_dump(report.document, sort_keys=False, allow_unicode=False)
    return text


def _json_text(report: CommandReport) -> str:
    """Returns ASCII: other characters, which may control a terminal, are escaped.

    A report of a whole cluster has 50 MB: the dictionaries of ``document`` would take ten times as much.
    """
    fields = {field.encode_name: getattr(report, field.name) for field in msgspec.structs.fields(report)}
    try:
        encoded = msgspec.json.encode({"apiVersion": API_VERSION, "kind": report.kind, **fields})
    except UnicodeEncodeError:  # bytes that are no text, as names of files may be
        encoded = b""
    if not encoded.isascii() or not encoded:
        return json.dumps(report.document, indent=2)
    return msgspec.json.format(encoded, indent=2).decode()
