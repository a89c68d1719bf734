"""The formats of ``-o``: what is printed of a report."""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from gpushare_cli.report import CommandReport


class Format(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"

    @property
    def is_for_people(self) -> bool:
        return self in (Format.TABLE, Format.WIDE)

    @classmethod
    def _missing_(cls, value: object) -> "Format | None":
        """``text`` is what ``audit`` called its table before the others had formats."""
        return cls.TABLE if value == "text" else None


def document_text(report: CommandReport, chosen: Format) -> str:
    """Returns the text of a format for programs, which ends with a line feed."""
    return "".join(document_parts(report, chosen))


def document_parts(report: CommandReport, chosen: Format) -> Iterator[str]:
    """Yields the text part by part: of a whole cluster it has 50 MB."""
    if chosen is Format.NAME:
        yield from (f"{name}\n" for name in report.names)
    else:
        yield from _json_parts(report.fields) if chosen is Format.JSON else _yaml_parts(report.fields)


def _json_parts(fields: Mapping[str, object]) -> Iterator[str]:
    before = "{\n  "
    for name, value in fields.items():
        yield f"{before}{_json_text(name)}: "
        if isinstance(value, list | tuple) and value:
            for place, item in enumerate(value):
                yield f"{',' if place else '['}\n    {_json_text(item, indent=4)}"
            yield "\n  ]"
        else:
            yield _json_text(value, indent=2)
        before = ",\n  "
    yield "\n}\n"


def _json_text(value: object, *, indent: int = 0) -> str:
    """Returns ASCII: other characters, which may control a terminal, are escaped. ``indent``: of all lines
    but the first."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:  # bytes that are no text, as names of files may be
        encoded = b""
    if encoded and encoded.isascii():
        text = msgspec.json.format(encoded, indent=2).decode()
    else:
        text = json.dumps(msgspec.to_builtins(value, str_keys=True), indent=2)
    return text.replace("\n", "\n" + " " * indent)


def _yaml_parts(fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, list | tuple) and value:
            yield f"{name}:\n"
            yield from (_yaml_text([item]) for item in value)
        else:
            yield _yaml_text({name: value})


def _yaml_text(value: object) -> str:
    import yaml  # for this format alone: it takes as long as the rest of the start

    plain = msgspec.to_builtins(value, str_keys=True)
    try:
        text: str = yaml.dump(plain, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
    except UnicodeEncodeError:  # as above
        text = yaml.safe_dump(plain, sort_keys=False)
    return text
