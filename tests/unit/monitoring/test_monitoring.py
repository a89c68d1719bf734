"""Dashboard, alert rules and documentation speak of metrics that exist, and of their labels and values."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.samples.metrics import Shown, all_shown

from gpushare_core.api.names import ISOLATION_READY

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "config" / "monitoring"
DOCUMENT = ROOT / "docs" / "monitoring.md"

SHOWN = all_shown()
OF_THE_TARGET = {"pod", "namespace", "job", "instance", "container", "app_kubernetes_io_component"}
"""Labels that Prometheus adds."""
PROMQL = {
    *("sum", "max", "count", "rate", "increase", "absent", "histogram_quantile", "vector", "sum_over_time"),
    *("by", "on", "group_left", "and", "or", "unless"),
}
CONDITIONS = {
    *("Ready", "NodesReady", "Degraded", "BooksAgree"),
    *("Registered", "CardsHealthy", "LedgerInSync", ISOLATION_READY),
}

OURS = ("gpushare_", "process_", "up")
SHOWN["up"] = Shown("gauge", frozenset(OF_THE_TARGET))
"""Prometheus' own: whether a target answered."""

Selector = tuple[str, dict[str, tuple[str, str]]]


def selectors(expression: str) -> Iterator[Selector]:
    """Yields each metric's name with its matchers: label -> operator and value."""
    for found in re.finditer(r"([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\})?", _without_durations(expression)):
        if found[1].startswith(OURS):
            matchers = re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', found[2] or "")
            yield found[1], {label: (operator, value) for label, operator, value in matchers}


def _without_durations(expression: str) -> str:
    return re.sub(r"\[[^\]]*\]", "", expression)


def other_words(expression: str) -> set[str]:
    """Returns all words that are neither metrics nor matchers: functions, keywords and labels."""
    plain = re.sub(r'\{[^}]*\}|"[^"]*"', "", _without_durations(expression))
    return {word for word in re.findall(r"[a-zA-Z_]\w*", plain) if not word.startswith(OURS)}


def problems(expression: str) -> list[str]:
    """Returns what ``expression`` speaks of that does not exist."""
    labels = {"le"} | OF_THE_TARGET
    found: list[str] = []
    for name, matchers in selectors(expression):
        shown = SHOWN.get(name)
        if shown is None:
            found.append(f"no metric {name}")
            continue
        labels |= shown.labels
        found += _of_matchers(name, shown, matchers)
    return found + [f"no word {word}" for word in other_words(expression) - PROMQL - labels]


def _of_matchers(name: str, shown: Shown, matchers: dict[str, tuple[str, str]]) -> Iterator[str]:
    for label, (operator, value) in matchers.items():
        if label not in shown.labels:
            yield f"{name} has no label {label}"
        elif label in shown.values and "$" not in value:
            wanted = value.split("|") if "~" in operator else [value]
            yield from (
                f"{label} of {name} is never {rule}" for rule in wanted if rule not in shown.values[label]
            )
        elif label == "type" and value not in CONDITIONS:
            yield f"no condition {value}"


def rules() -> list[dict[str, Any]]:
    body = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    return [rule for group in body["spec"]["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return list(json.loads((MONITORING / "dashboard.json").read_text())["panels"])


@pytest.mark.parametrize("rule", [pytest.param(rule_, id=rule_["alert"]) for rule_ in rules()])
def test_a_rule_speaks_of_what_there_is(rule: dict[str, Any]) -> None:
    assert problems(rule["expr"]) == []
    assert any(True for _ in selectors(rule["expr"]))
    assert rule["labels"]["severity"] in ("critical", "warning")


@pytest.mark.parametrize("rule", [pytest.param(rule_, id=rule_["alert"]) for rule_ in rules()])
def test_the_words_of_a_rule_name_labels_that_the_expression_has(rule: dict[str, Any]) -> None:
    text = " ".join(rule["annotations"].values())
    named = set(re.findall(r"\$labels\.(\w+)", text))
    known = {label for name, _ in selectors(rule["expr"]) for label in SHOWN[name].labels} | OF_THE_TARGET
    summed = re.search(r"sum by \(([^)]*)\)", rule["expr"])
    kept = {part.strip() for part in summed[1].split(",")} if summed else known
    assert named <= kept


@pytest.mark.parametrize("panel", [pytest.param(rule, id=rule["title"]) for rule in panels()])
def test_a_panel_speaks_of_what_there_is(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        assert problems(target["expr"]) == []


def test_panels_have_an_own_place_and_number() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in panels()})


def test_the_variables_of_the_dashboard_are_asked_of_metrics_that_have_the_label() -> None:
    variables = json.loads((MONITORING / "dashboard.json").read_text())["templating"]["list"]
    asked = [re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]) for variable in variables]
    found = [rule.groups() for rule in asked if rule]
    assert found
    assert all(label in SHOWN[name].labels for name, label in found)


def queries() -> list[str]:
    """Returns what the page has people ask Prometheus."""
    page = DOCUMENT.read_text()
    blocks = re.findall(r"^```promql\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [*blocks, *re.findall(r"^\| [^|`]+\? \| `([^`]+)` \|$", page, re.MULTILINE)]


@pytest.mark.parametrize("query", queries())
def test_a_query_of_the_page_speaks_of_what_there_is(query: str) -> None:
    assert problems(query) == []
    assert any(True for _ in selectors(query))


def test_the_page_names_panels_that_the_dashboard_has() -> None:
    named = re.findall(r"panel \*([^*]+)\*", DOCUMENT.read_text())
    assert named
    assert {*named} <= {panel["title"] for panel in panels()}


def test_every_metric_is_documented_and_no_other() -> None:
    documented = set(re.findall(r"`(gpushare_\w+)`", DOCUMENT.read_text()))
    families = {
        re.sub(r"_(bucket|sum|count)$", "", name) if shown.kind == "histogram" else name
        for name, shown in SHOWN.items()
        if name.startswith("gpushare_")
    }
    assert documented == families


SHOWN_BY_SCHEDULER = re.compile(r'described\(\s*"(\w+)",\s*"[^"]*"((?:, "\w+")*)\)')


def test_the_scheduler_shows_nothing_by_another_name_or_with_other_labels() -> None:
    """The names are in Go, and dashboards serve both engines."""
    source = (ROOT / "scheduler/internal/metrics/collect.go").read_text()
    described = {name: set(re.findall(r"\w+", labels)) for name, labels in SHOWN_BY_SCHEDULER.findall(source)}
    assert len(described) == source.count("described(") - 1 > 0
    assert described == {name: set(SHOWN[name].labels) for name in described}


def test_every_alert_is_documented() -> None:
    documented = set(re.findall(r"`(GPUShare[A-Z]\w+)`", DOCUMENT.read_text()))
    assert documented >= {rule["alert"] for rule in rules()}


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("rate(gpushare_nope[5m])", "no metric gpushare_nope", id="metric"),
        pytest.param(
            "gpushare_extender_binds", "no metric gpushare_extender_binds", id="counter without total"
        ),
        pytest.param('gpushare_cards{colour="red"}', "gpushare_cards has no label colour", id="label"),
        pytest.param(
            'gpushare_extender_binds_total{result="Nice"}',
            "result of gpushare_extender_binds_total is never Nice",
            id="value",
        ),
        pytest.param('gpushare_policy_condition{type="Red"}', "no condition Red", id="condition"),
        pytest.param("sum by (colour) (gpushare_cards)", "no word colour", id="sum by a label"),
        pytest.param("summ(gpushare_cards)", "no word summ", id="function"),
    ],
)
def test_what_does_not_exist_is_noticed(expression: str, problem: str) -> None:
    assert problems(expression) == [problem]
