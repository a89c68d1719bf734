"""Formats, colours and characters of what is printed."""

import io
import json
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import pytest
import yaml
from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.output.format import Format, document_text
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.printer import printer_of
from gpushare_cli.output.terminal import PIPE_WIDTH, ColorChoice, console_of
from gpushare_cli.report import CommandReport

DOCUMENT = {
    "apiVersion": "cli.gpushare.io/v1alpha1",
    "kind": "CardReport",
    "nodeName": "gpu-1",
    "cards": [{"cardName": "a\ncaf\u00e9", "freeUnits": {"1": 2}}, {"cardName": "b", "freeUnits": {}}],
    "others": [],
    "note": "caf\u00e9 \u2013 \x1b[31m",
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class FoundCard(Struct, frozen=True, rename="camel"):
    card_name: str
    free_units: dict[int, int]


class CardReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "CardReport"
    node_name: str = "gpu-1"
    cards: Sequence[FoundCard] = (FoundCard("a\ncaf\u00e9", {1: 2}), FoundCard("b", {}))
    others: Sequence[FoundCard] = ()
    note: str = "caf\u00e9 \u2013 \x1b[31m"

    @property
    def names(self) -> list[str]:
        return [f"gpusharenode/{self.node_name}"]


def view(report: CardReport, _page: OutputPage) -> Iterable[RenderableType]:
    yield heading("Cards")
    yield sentence(report.note, indent=2)
    yield to_type("kubectl get " + "x" * 100)
    yield Text("red", "red")


def printed(file: io.StringIO | None = None, /, **changes: object) -> str:
    options = {"color": ColorChoice.AUTO, "output": Format.TABLE, "no_headers": False, "ascii": False}
    environment = changes.pop("environment", {"TERM": "xterm"})
    assert isinstance(environment, Mapping)
    target = file or io.StringIO()
    printer_of(target, Namespace(**{**options, **changes}), environment).print(CardReport(), view)
    return target.getvalue()


def test_a_pipe_gets_no_colours_and_no_escape_of_an_object() -> None:
    assert "\x1b" not in printed()
    assert "\\u001b[31m" in printed()


def test_colours_are_for_terminals_unless_somebody_says_otherwise() -> None:
    assert "\x1b[31mred" in printed(Terminal())
    assert "\x1b" not in printed(Terminal(), environment={"TERM": "xterm", "NO_COLOR": "1"})
    assert "\x1b" not in printed(Terminal(), environment={"TERM": "dumb"})
    assert "\x1b" not in printed(Terminal(), color=ColorChoice.NEVER)
    assert "\x1b[31mred" in printed(color=ColorChoice.ALWAYS)
    assert "\x1b[31mred" in printed(color=ColorChoice.ALWAYS, environment={"NO_COLOR": "1"})


def test_a_command_to_type_is_one_line_however_narrow_the_page() -> None:
    text = printed(Terminal(), environment={"TERM": "xterm", "COLUMNS": "40"})
    assert "  kubectl get " + "x" * 100 in text


def test_ascii_is_ascii_alone() -> None:
    text = printed(ascii=True)
    assert text.isascii()
    assert "caf\\xe9 \\u2013" in text


def test_a_pipe_breaks_no_line_unless_its_columns_are_given() -> None:
    def width(environment: Mapping[str, str]) -> int:
        return console_of(io.StringIO(), color=ColorChoice.AUTO, environment=environment).width

    assert width({}) == PIPE_WIDTH
    assert width({"COLUMNS": "80"}) == 80
    assert width({"COLUMNS": "many"}) == PIPE_WIDTH
    assert width({"COLUMNS": "9" * 30}) == PIPE_WIDTH


@pytest.mark.parametrize("output", [Format.JSON, Format.YAML])
def test_documents_are_whole_and_ascii(output: Format) -> None:
    text = printed(output=output)
    assert text.isascii()
    assert "nodeName" in text
    assert "cli.gpushare.io/v1alpha1" in text


def test_documents_are_printed_in_parts_and_are_one() -> None:
    assert printed(output=Format.JSON) == json.dumps(DOCUMENT, indent=2) + "\n"
    assert printed(output=Format.YAML) == yaml.safe_dump(DOCUMENT, sort_keys=False)


def test_names_of_files_that_are_no_text_are_escaped() -> None:
    report = CardReport(node_name="\udcff", cards=[FoundCard("\udcff", {})])
    for read in (
        json.loads(document_text(report, Format.JSON)),
        yaml.safe_load(document_text(report, Format.YAML)),
    ):
        assert (read["nodeName"], read["cards"][0]["cardName"]) == ("\udcff", "\udcff")


def test_names_are_a_line_each() -> None:
    assert printed(output=Format.NAME) == "gpusharenode/gpu-1\n"
