"""The page of all names has a row for each that the programs have, and for no other."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.docs import written_names
from tests.unit.docs.written_names import ROOT

from gpushare_core.api.names import API_VERSION, BOOKS_ANNOTATION_PREFIX, STARTUP_TAINT
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.dialects.visible_cards import APPLICATION_VARIABLES, RUNTIME_VARIABLES

PAGE = ROOT / "docs/reference.md"
OF_OUTPUT = "cli.gpushare.io/v1alpha1"
"""What the command line prints as JSON; docs/cli-schema.json describes it."""
BY_KUBECTL = {"KUBECONFIG"}
"""Read by the library that reads kubeconfigs."""
NO_VARIABLES = {"CLOCK_BOOTTIME", "WRONG_VERSION_NUMBER"}
"""A clock of the kernel, and an error of TLS."""


def first_column(*headings: str) -> Iterator[str]:
    """Yields what the tables below ``headings`` have in code in their first column."""
    title = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif line.startswith("| `") and title in headings:
            yield from re.findall(r"`([^`]+)`", line.split("|")[1])


def test_every_condition_has_a_row() -> None:
    assert set(first_column("Conditions")) == written_names.condition_types()


def test_every_reason_of_a_condition_or_fault_has_one_row() -> None:
    rows = [
        *first_column("Reasons of a policy's conditions", "Reasons of a node's conditions"),
        *first_column("Faults of a card"),
    ]
    assert set(rows) == written_names.condition_reasons()
    assert sorted(rows) == sorted(set(rows))


def test_every_event_has_a_row() -> None:
    assert set(first_column("Events")) == written_names.event_reasons()


def test_every_label_annotation_and_resource_has_a_row() -> None:
    rows = set(
        first_column(
            "Labels and annotations that you set", "Labels and annotations that gpushare sets", "Resources"
        )
    )
    assert rows - {STARTUP_TAINT, BOOKS_ANNOTATION_PREFIX} == written_names.keys() - {API_VERSION, OF_OUTPUT}
    assert {STARTUP_TAINT, BOOKS_ANNOTATION_PREFIX} <= rows


def test_every_variable_has_a_row() -> None:
    of_vendors = APPLICATION_VARIABLES | RUNTIME_VARIABLES
    of_dialects = {name for name in written_names.variables() if name.startswith(("ALIYUN_COM_", "VOLCANO_"))}
    read = written_names.variables() - of_vendors - of_dialects - NO_VARIABLES
    assert set(first_column("Environment variables")) - BY_KUBECTL == read


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "gpushare.io"])
def test_every_name_of_a_dialect_is_on_its_page(name: str) -> None:
    dialect, page = DIALECTS[name], ROOT / f"docs/dialects/{name.partition('.')[0]}.md"
    keys = {*dialect.codec.bind_keys, *dialect.codec.assignment_keys, *dialect.node_labels}
    prefix = f"{name.partition('.')[0].upper()}_"
    variables = {variable for variable in written_names.variables() if variable.startswith(prefix)}
    assert sorted(word for word in keys | variables if not named(word, page)) == []


def named(word: str, page: Path) -> bool:
    """Whether ``page`` has ``word``, or its end where the page gives the beginning once (``..._POD``)."""
    text = page.read_text()
    return word in text or f"`{word.rpartition('_')[2]}`" in text


def test_an_expression_that_is_not_followed_is_not_passed_over() -> None:
    """Or a new way of writing a reason would have no row, and nobody would notice."""
    module = written_names.modules()["gpushare_plugin.decide.report.conditions"]
    expression = written_names.ast.parse("made_up()", mode="eval").body
    with pytest.raises(written_names.UnknownTextError, match=r"report/conditions\.py:1: made_up\(\)"):
        written_names.texts(expression, module)
