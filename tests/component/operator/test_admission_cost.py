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

from gpushare_core.api.names import (
    ADMISSION_LABEL,
    ISOLATED_ANNOTATION,
    ISOLATION_ADMISSION_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_core.dialects.annotation_room import (
    MAX_ANNOTATIONS,
    MAX_BYTES,
    MAX_CONTAINERS,
    ROOM_BYTES,
)
from gpushare_core.dialects.dialect import OWN_VARIABLES
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import RESOURCES, SHARED_RESOURCES
from gpushare_core.dialects.visible_cards import (
    APPLICATION_VARIABLES,
    NO_CARDS,
    NVIDIA_VARIABLE,
    RUNTIME_SUFFIX,
    RUNTIME_VARIABLES,
)
from gpushare_core.placement.modes.table import MAX_UNITS
from gpushare_operator.cluster.labels import COMPARE_LABEL

MANIFESTS = Path(__file__).resolve().parents[3] / "manifests"

SIMULATED_CARDS = 64
"""The most that a node can have."""

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


def evaluated_unasked(operation: str, resource: str) -> set[str]:
    """Those of ``evaluated`` that everybody's requests come by without a policy that asks for it: the others
    have bindings that look for a policy with a certain value of ``ADMISSION_LABEL``, or of
    ``ISOLATION_ADMISSION_LABEL``."""
    asked: dict[str, bool] = {}
    for _, spec in policies("ValidatingAdmissionPolicyBinding"):
        labels = spec.get("paramRef", {}).get("selector", {}).get("matchLabels", {})
        values = {labels.get(key, "Allow") for key in (ADMISSION_LABEL, ISOLATION_ADMISSION_LABEL)}
        name = spec["policyName"]
        asked[name] = asked.get(name, True) and values != {"Allow"}
    return {name for name in evaluated(operation, resource) if not asked[name]}


def conditions(policy: str) -> list[str]:
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == policy]
    return [match_condition["expression"] for match_condition in spec["matchConditions"]]


def variable(policy: str, name: str) -> set[str]:
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == policy]
    (expression,) = [variable["expression"] for variable in spec["variables"] if variable["name"] == name]
    return {*re.findall(r"'([^']+)'", expression)}


@pytest.mark.parametrize(
    ("operation", "resource", "expected"),
    [
        pytest.param("CREATE", "pods", {"gpushare-requests", "gpushare-dialect-environments"}, id="created"),
        pytest.param("CREATE", "pods/binding", {"gpushare-bindings"}, id="bound"),
        pytest.param("UPDATE", "pods", {"gpushare-pods"}, id="changed"),
        pytest.param("UPDATE", "pods/status", {"gpushare-pods"}, id="reported on"),
        pytest.param("CREATE", "events", {"gpushare-plugin-events"}, id="told of"),
        pytest.param("UPDATE", "pods/ephemeralcontainers", {"gpushare-pods"}, id="looked into"),
        pytest.param("DELETE", "pods", set[str](), id="deleted"),
    ],
)
def test_few_policies_are_evaluated(operation: str, resource: str, expected: set[str]) -> None:
    assert evaluated_unasked(operation, resource) == expected


def test_what_a_policy_has_to_ask_for_is_looked_up_only_there() -> None:
    """Without a policy that has the label no pod is converted for it."""
    asked = evaluated("CREATE", "pods") - evaluated_unasked("CREATE", "pods")
    assert asked == {"gpushare-visible-devices", "gpushare-isolation-bypass"}
    references = [
        spec["paramRef"]
        for _, spec in policies("ValidatingAdmissionPolicyBinding")
        if spec["policyName"] in asked | {"gpushare-dialect-environments"}
    ]
    assert len(references) == 5
    assert {reference["parameterNotFoundAction"] for reference in references} == {"Allow"}


def test_without_backend_dedicated_nothing_changes_pods() -> None:
    names = [path.name for path in MANIFESTS.glob("*.yaml") if "MutatingAdmissionPolicy" in path.read_text()]
    assert names == []
    assert evaluated("CREATE", "pods", kind="MutatingAdmissionPolicy") == {"gpushare-scheduler"}


def test_what_is_compared_with_the_operators_deployment_is_refused_without_it() -> None:
    """A parameter is looked up before any condition is asked, whoever writes what is matched: so only what
    bears a label of the operator's own is matched."""
    bindings = {
        name: spec["paramRef"]
        for name, spec in policies("ValidatingAdmissionPolicyBinding")
        if "paramRef" in spec
    }
    with_parameter = {
        name: spec
        for name, spec in policies("ValidatingAdmissionPolicy")
        if spec.get("paramKind", {}).get("kind") == "Deployment"
    }
    bindings = {name: binding for name, binding in bindings.items() if name in with_parameter}
    assert (
        bindings.keys()
        == with_parameter.keys()
        == {"gpushare-operator-images", "gpushare-operator-scheduler-images"}
    )
    assert {binding["parameterNotFoundAction"] for binding in bindings.values()} == {"Deny"}
    matched = {"matchExpressions": [{"key": COMPARE_LABEL, "operator": "Exists"}]}
    selectors = [spec["matchConstraints"]["objectSelector"] for spec in with_parameter.values()]
    assert selectors == [matched, matched]


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
    labels = variable("gpushare-operator-nodes", "ourLabels") - {SCHEDULER_LABEL}
    assert lists_of(nothing_else) == [labels] * 3, "what has changed, how many there are, and were"


def test_who_changes_anything_else_of_a_node_than_its_labels_is_looked_at() -> None:
    """What a condition leaves out is allowed unseen."""
    (condition,) = conditions("gpushare-operator-nodes")
    _, nothing_else = condition.split("&& !(")
    assert "||" not in nothing_else, "only the labels have a choice"
    compared = {*re.findall(r"&& object\.([A-Za-z.?]+?)(?:\.orValue\(\S+\))? == oldObject", nothing_else)}
    assert compared == {
        "metadata.?annotations",
        "metadata.?finalizers",
        "metadata.?ownerReferences",
        "spec",
        "?status",
    }


MAX_VARIABLES = 1000
OF_DIALECTS = RESOURCES.keys() - GPUSHARE.resources.keys() - SHARED_RESOURCES


def lists_of(expression: str) -> list[set[str]]:
    return [{*re.findall(r"'([^']*)'", literals)} for literals in re.findall(r"\[('[^\[\]]*)\]", expression)]


def expression_of(policy: str, name: str) -> str:
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == policy]
    (expression,) = [variable["expression"] for variable in spec["variables"] if variable["name"] == name]
    return str(expression)


def test_a_condition_is_not_narrower_than_what_it_stands_before() -> None:
    asked, *_ = lists_of(conditions("gpushare-requests")[0])
    assert asked == {*RESOURCES} == lists_of(expression_of("gpushare-requests", "askingForTwo"))[0]
    assert asked == lists_of(expression_of("gpushare-requests", "asking"))[0]
    assert lists_of(expression_of("gpushare-requests", "settingVariables"))[0] == GPUSHARE.resources.keys()
    unserved, warned, *_ = lists_of(conditions("gpushare-dialect-environments")[0])
    assert warned == OF_DIALECTS == lists_of(expression_of("gpushare-dialect-environments", "asking"))[0]
    assert unserved == RESOURCES.keys() - GPUSHARE.resources.keys()
    assert lists_of(expression_of("gpushare-dialect-environments", "unserved")) == [unserved]


def test_who_asks_for_no_card_is_known_by_the_same_lists() -> None:
    """NVIDIA's variable has rules of its own: some of its values show no card."""
    condition = conditions("gpushare-visible-devices")[0]
    (spec,) = [
        spec for name, spec in policies("ValidatingAdmissionPolicy") if name == "gpushare-visible-devices"
    ]
    for expression in (condition, expression_of("gpushare-visible-devices", "showing")):
        lists = lists_of(expression)
        assert {*NO_CARDS} in lists
        assert {*RUNTIME_VARIABLES, *APPLICATION_VARIABLES, NVIDIA_VARIABLE} in lists
        assert {*RESOURCES} in lists
        assert f"one.name == '{NVIDIA_VARIABLE}'" in expression
    assert spec["failurePolicy"] == "Ignore", "else no pod is made while policy and CRD are taken away"


ISOLATION = "gpushare-isolation-bypass"


def test_who_gets_round_a_limit_is_looked_for_in_pods_that_ask_for_a_share_only() -> None:
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == ISOLATION]
    assert lists_of(conditions(ISOLATION)[0]) == [{*RESOURCES}]
    assert spec["failurePolicy"] == "Ignore", "else no pod is made while policy and CRD are taken away"
    assert f"'{ISOLATED_ANNOTATION}'" in expression_of(ISOLATION, "isolated")


def test_longer_lists_than_are_looked_through_are_told_of_instead() -> None:
    """A policy that costs too much is left out, for its failurePolicy is Ignore."""
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == ISOLATION]
    assert spec["validations"][0]["expression"] == "variables.parts <= 10000"
    for name in ("setting", "mounting", "privileged", "reaching"):
        assert expression_of(ISOLATION, name).startswith("variables.parts > 10000")


def test_the_most_that_is_let_pass_is_what_64_cards_have() -> None:
    most = SIMULATED_CARDS * MAX_UNITS
    assert f"quantity('{most // 2**20}Mi')" in conditions("gpushare-requests")[0]
    assert most % 2**20 == 0


@pytest.mark.parametrize("policy", ["gpushare-requests", "gpushare-dialect-environments"])
def test_a_pod_does_not_set_what_says_which_cards_it_sees(policy: str) -> None:
    """NVIDIA's variable has rules of its own: some of its values show no card."""
    condition, naming, message = conditions(policy)[0], expression_of(policy, "naming"), message_of(policy)
    for expression, others in [
        (condition, set[str]()),
        (naming, {NVIDIA_VARIABLE}),
        (message, {NVIDIA_VARIABLE}),
    ]:
        own = {*OWN_VARIABLES, *RUNTIME_VARIABLES}
        assert not [name for name in own if name.endswith(RUNTIME_SUFFIX)]
        assert lists_of(expression)[-1] == own | APPLICATION_VARIABLES | others
        assert f"one.name.endsWith('{RUNTIME_SUFFIX}') != (one.name in" in expression
    by_nvidia = expression_of(policy, "namingByNvidia")
    assert lists_of(by_nvidia) == [{*NO_CARDS}]
    assert f"one.name == '{NVIDIA_VARIABLE}'" in by_nvidia


@pytest.mark.parametrize("policy", ["gpushare-requests", "gpushare-dialect-environments"])
def test_thousands_of_variables_of_one_container_are_not_looked_at(policy: str) -> None:
    """The API server's time for a list grows with the square of its length."""
    guarded = f"env.size() <= {MAX_VARIABLES} && each.env.exists("
    naming, by_nvidia = (
        " ".join(expression_of(policy, name).split()) for name in ("naming", "namingByNvidia")
    )
    asking = expression_of(policy, "asking")
    assert f"env.size() <= {MAX_VARIABLES}" in asking or (guarded in naming and guarded in by_nvidia)


def test_of_containers_that_ask_for_no_card_longer_lists_are_refused_unseen() -> None:
    """Who may not show himself cards must not pass by a list that nobody looks through."""
    policy = "gpushare-visible-devices"
    (condition,) = (" ".join(text.split()) for text in conditions(policy))
    crowded, showing = (" ".join(expression_of(policy, name).split()) for name in ("crowded", "showing"))
    assert f"(each.env.size() > {MAX_VARIABLES} || each.env.exists(" in condition
    assert f"each.env.size() > {MAX_VARIABLES}" in crowded
    assert f"each.env.size() <= {MAX_VARIABLES} && each.env.exists(" in showing


@pytest.mark.parametrize(
    ("policy", "own"),
    [
        pytest.param("gpushare-operator-nodes", ("ourLabels", "ourAnnotations"), id="nodes"),
        pytest.param("gpushare-cards", ("keys",), id="cards"),
    ],
)
def test_a_walk_over_keys_lets_pass_what_its_variable_names(policy: str, own: tuple[str, ...]) -> None:
    """A variable would cost more than a list that is written there."""
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == policy]
    walks = [
        validation["expression"]
        for validation in spec["validations"]
        if "old.filter(key" in validation["expression"]
    ]
    assert [lists_of(walk.partition("old.filter(")[2])[0] for walk in walks] == [
        variable(policy, name) for name in own
    ]


def message_of(policy: str) -> str:
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == policy]
    return next(
        str(validation["messageExpression"])
        for validation in spec["validations"]
        if "variables.naming.size()" in validation["expression"]
    )


KEY_BYTES = 253 + len("/") + 63
CHARACTER_BYTES = 4


@pytest.mark.parametrize("policy", ["gpushare-requests", "gpushare-pods"])
def test_whose_annotations_are_not_added_up_they_fit(policy: str) -> None:
    """The condition counts annotations, and characters of the longest: adding up would cost more."""
    (condition,) = conditions(policy)
    (number,) = re.findall(r"annotations\.orValue\(\{\}\)\.size\(\) > (\d+)", condition)
    (longest,) = re.findall(r"annotations\[key\]\.size\(\) > (\d+)", condition)
    most = int(number) * (KEY_BYTES + CHARACTER_BYTES * int(longest))
    assert most <= MAX_BYTES - ROOM_BYTES
    assert int(number) <= MAX_ANNOTATIONS


@pytest.mark.parametrize("policy", ["gpushare-requests", "gpushare-dialect-environments"])
def test_of_thousands_of_containers_only_those_that_ask_are_looked_at_closer(policy: str) -> None:
    """All variables together took the API server 5 s for a pod of 2,000."""
    (spec,) = [spec for name, spec in policies("ValidatingAdmissionPolicy") if name == policy]
    through_all = [
        variable["name"]
        for variable in spec["variables"]
        if "object.spec.containers" in variable["expression"]
    ]
    assert through_all == (["asking"] if policy == "gpushare-requests" else ["asking", "unserved"])


def test_whose_containers_are_not_counted_by_what_they_ask_for_they_fit() -> None:
    (condition,) = conditions("gpushare-requests")
    (most,) = re.findall(r"initContainers\.orValue\(\[\]\)\.size\(\) > (\d+)", condition)
    assert int(most) == MAX_CONTAINERS


def test_an_update_is_looked_at_for_the_same_resources_as_a_new_pod() -> None:
    (condition,) = conditions("gpushare-pods")
    lists = [{*re.findall(r"'([^']+)'", literals)} for literals in re.findall(r"\[('[^\[\]]+)\]", condition)]
    assert lists[-1] == variable("gpushare-pods", "asks") == {*RESOURCES}


def test_every_resource_is_seen_as_another_one() -> None:
    """The condition of gpushare-requests knows a second one by its slash."""
    assert "other.contains('/')" in conditions("gpushare-requests")[0]
    assert [name for name in RESOURCES if "/" not in name] == []
