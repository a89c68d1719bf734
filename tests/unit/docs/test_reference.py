"""The page of all names has a row for each that the programs have, and for no other."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.unit.docs import written_names
from tests.unit.docs.written_names import ROOT

from gpushare_core.api.names import API_VERSION, BOOKS_ANNOTATION_PREFIX, STARTUP_TAINT
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.dialects.visible_cards import APPLICATION_VARIABLES, RUNTIME_VARIABLES

PAGE = ROOT / "docs/reference.md"
OF_DIALECTS = ROOT / "docs/dialects/README.md"
OF_OUTPUT = "cli.gpushare.io/v1alpha1"
"""What the command line prints as JSON; docs/cli-schema.json describes it."""
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
    assert set(first_column("Environment variables")) == read


def test_every_name_of_a_dialect_has_a_row_and_no_other() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| `([^`]+)` \| \w", OF_DIALECTS.read_text(), re.MULTILINE)
    written = {(dialect.name, name) for dialect in DIALECTS.values() for name in names(dialect)}
    assert {row for row in rows if row[0] != "gpushare.io"} == written
    assert len(rows) == len(set(rows))


def names(dialect: Dialect) -> set[str]:
    """Returns what a dialect writes beside the resources that pods ask for."""
    prefix = f"{dialect.name.partition('.')[0].upper()}_"
    return {
        *dialect.codec.bind_keys,
        *dialect.codec.assignment_keys,
        *dialect.node_labels,
        *(
            variable
            for variable in written_names.variables()
            if variable.startswith(prefix) and dialect is not GPUSHARE
        ),
        *(name for name in (dialect.closed_cards_annotation,) if name),
        *(name for name in (dialect.count_resource,) if name and name != dialect.card_resource),
    }


def test_an_expression_that_is_not_followed_is_not_passed_over() -> None:
    """Or a new way of writing a reason would have no row, and nobody would notice."""
    module = written_names.modules()["gpushare_plugin.decide.report.conditions"]
    expression = ast.parse("made_up()", mode="eval").body
    with pytest.raises(written_names.UnknownTextError, match=r"report/conditions\.py:1: made_up\(\)"):
        written_names.texts(expression, module)
