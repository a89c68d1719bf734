"""The formats of ``-o``: what is printed of a report."""

import json
from enum import StrEnum

from gpushare_cli.report import CommandReport


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
        return f"{json.dumps(report.document, indent=2)}\n"
    import yaml  # for this format alone: it takes as long as the rest of the start

    text: str = yaml.safe_dump(report.document, sort_keys=False, allow_unicode=False)
    return text
