"""Pods that are no affair of ours are looked at by as few admission policies as possible.

Each policy that is evaluated at all costs the API server a conversion of the object, for its conditions;
where they hold there are three more.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.dialects.dialect import OWN_VARIABLES
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import RESOURCES, SHARED_RESOURCES
from gpushare_core.dialects.visible_cards import (
    APPLICATION_PREFIX,
    APPLICATION_VARIABLES,
    NO_CARDS,
    NVIDIA_VARIABLE,
    RUNTIME_SUFFIX,
    RUNTIME_VARIABLES,
)

MANIFESTS = Path(__file__).resolve().parents[3] / "manifests"

Spec = Mapping[str, Any]


def policies(kind: str) -> Iterator[tuple[str, Spec]]:
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        for body in yaml.safe_load_all(path.read_text()):
            if body and body["kind"] == kind:
                yield body["metadata"]["name"], body["spec"]


def evaluated(operation: str, resource: str, *, kind: str = "ValidatingAdmissionPolicy") -> set[str]:
    """The policies that everybody's requests of this kind come by."""
    return {
        name
        for name, spec in policies(kind)
        for rule in spec["matchConstraints"]["resourceRules"]
        if operation in rule["operations"] and resource in rule["resources"]
    }


def conditions(policy: str) -> list[str]:
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == policy]
    return [each["expression"] for each in spec["matchConditions"]]


def variable(policy: str, name: str) -> set[str]:
    (spec,) = [spec for each, spec in policies("ValidatingAdmissionPolicy") if each == policy]
    (expression,) = [each["expression"] for each in spec["variables"] if each["name"] == name]
    return {*re.findall(r"'([^']+)'", expression)}


@pytest.mark.parametrize(
    ("operation", "resource", "expected"),
    [
        pytest.param("CREATE", "pods", {"gpushare-requests", "gpushare-dialect-environments"}, id="created"),
        pytest.param("CREATE", "pods/binding", {"gpushare-bindings"}, id="bound"),
        pytest.param("UPDATE", "pods", {"gpushare-pods"}, id="changed"),
        pytest.param("UPDATE", "pods/status", {"gpushare-pods"}, id="reported on"),
        pytest.param("CREATE", "events", {"gpushare-plugin-events"}, id="told of"),
        pytest.param("DELETE", "pods", set[str](), id="deleted"),
    ],
)
def test_few_policies_are_evaluated(operation: str, resource: str, expected: set[str]) -> None:
    assert evaluated(operation, resource) == expected


def test_without_backend_dedicated_nothing_changes_pods() -> None:
    names = [path.name for path in MANIFESTS.glob("*.yaml") if "MutatingAdmissionPolicy" in path.read_text()]
    assert names == []
    assert evaluated("CREATE", "pods", kind="MutatingAdmissionPolicy") == {"gpushare-scheduler"}


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"])
def test_every_policy_says_first_what_is_no_affair_of_ours(kind: str) -> None:
    assert [name for name, spec in policies(kind) if not spec.get("matchConditions")] == []


def test_the_events_of_kubelets_are_not_even_converted() -> None:
    """They are of the other API, in which the plugin may write none."""
    (spec,) = [
        spec for name, spec in policies("ValidatingAdmissionPolicy") if name == "gpushare-plugin-events"
    ]
    assert spec["matchConstraints"]["matchPolicy"] == "Exact"
    assert [rule["apiVersions"] for rule in spec["matchConstraints"]["resourceRules"]] == [["*"]]
    bodies = yaml.safe_load_all((MANIFESTS / "rbac-plugin.yaml").read_text())
    groups = [
        rule["apiGroups"]
        for body in bodies
        for rule in body.get("rules", ())
        if {"events", "*"} & set(rule["resources"])
    ]
    assert groups == [["events.k8s.io"]]


def test_the_labels_of_a_policy_are_not_looked_at_closer() -> None:
    """Nodes were converted three times more for them. In one expression with who asks: a second condition
    would be evaluated for every kubelet's status, too."""
    (condition,) = conditions("gpushare-operator-nodes")
    who, nothing_else = condition.split("&& !(")
    assert "request.userInfo" in who
    (listed,) = re.findall(r"key in \[('[^\[\]]+)\]", nothing_else)
    labels = {*re.findall(r"'([^']+)'", listed)}
    assert labels == variable("gpushare-operator-nodes", "ourLabels") - {SCHEDULER_LABEL}


def test_who_changes_anything_else_of_a_node_than_its_labels_is_looked_at() -> None:
    """What a condition leaves out is allowed unseen."""
    (condition,) = conditions("gpushare-operator-nodes")
    _, nothing_else = condition.split("&& !(")
    assert "||" not in re.sub(r"\.all\(key, .*?\]\)", "", nothing_else, flags=re.S), (
        "only the labels have a choice"
    )
    compared = {*re.findall(r"&& object\.([A-Za-z.?]+?)(?:\.orValue\(\S+\))? == oldObject", nothing_else)}
    assert compared == {
        "metadata.?annotations",
        "metadata.?finalizers",
        "metadata.?ownerReferences",
        "spec",
        "?status",
    }


OF_DIALECTS = RESOURCES.keys() - GPUSHARE.resources.keys() - SHARED_RESOURCES


def lists_of(expression: str) -> list[set[str]]:
    return [{*re.findall(r"'([^']*)'", each)} for each in re.findall(r"\[('[^\[\]]*)\]", expression)]


def expression_of(policy: str, name: str) -> str:
    (spec,) = [spec for each, spec in policies("ValidatingAdmissionPolicy") if each == policy]
    (expression,) = [each["expression"] for each in spec["variables"] if each["name"] == name]
    return str(expression)


def test_a_condition_is_not_narrower_than_what_it_stands_before() -> None:
    asked, *_ = lists_of(conditions("gpushare-requests")[0])
    assert asked == {*RESOURCES} == lists_of(expression_of("gpushare-requests", "askingForTwo"))[0]
    assert lists_of(expression_of("gpushare-requests", "namingCards"))[0] == GPUSHARE.resources.keys()
    warned, *_ = lists_of(conditions("gpushare-dialect-environments")[0])
    assert warned == OF_DIALECTS == lists_of(expression_of("gpushare-dialect-environments", "refused"))[0]


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(conditions("gpushare-requests")[0], id="refused: condition"),
        pytest.param(expression_of("gpushare-requests", "namingCards"), id="refused"),
        pytest.param(conditions("gpushare-dialect-environments")[0], id="warned of: condition"),
        pytest.param(expression_of("gpushare-dialect-environments", "refused"), id="warned of"),
    ],
)
def test_a_pod_does_not_set_what_says_which_cards_it_sees(expression: str) -> None:
    _, own, applications, *values = lists_of(expression)
    assert own == {*OWN_VARIABLES, *RUNTIME_VARIABLES}
    assert applications == APPLICATION_VARIABLES
    assert all(map({*NO_CARDS}.__eq__, values))
    assert f"one.name.endsWith('{RUNTIME_SUFFIX}')" in expression
    assert f"!one.name.startsWith('{APPLICATION_PREFIX}')" in expression
    assert (
        ("has(one.valueFrom)" in expression)
        == (f"one.name != '{NVIDIA_VARIABLE}'" in expression)
        == bool(values)
    )


def test_every_resource_is_seen_as_another_one() -> None:
    """The condition of gpushare-requests knows a second one by its slash."""
    assert "other.contains('/')" in conditions("gpushare-requests")[0]
    assert [name for name in RESOURCES if "/" not in name] == []
