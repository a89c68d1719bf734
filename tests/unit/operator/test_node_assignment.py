"""Which node belongs to which rule of which policy."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.operator import (
    SLICED,
    Assignment,
    assign,
    node,
    plugin_pod,
    policy,
    rule,
    share,
    snapshot,
    spec_of_volcano,
)

from gpushare_core.api.policy import NodeSelector
from gpushare_operator.cluster.objects import PolicyObject


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True, id="label"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "2"}, False, id="other value"),
        pytest.param({"matchLabels": {"a": ""}}, {}, False, id="empty is not missing"),
        pytest.param({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, False, id="all must hold"),
        pytest.param({"matchExpressions": [("a", "In", ["1", "2"])]}, {"a": "2"}, True, id="in"),
        pytest.param({"matchExpressions": [("a", "In", ["1"])]}, {}, False, id="missing is in nothing"),
        pytest.param({"matchExpressions": [("a", "NotIn", ["1"])]}, {}, True, id="missing is not in"),
        pytest.param({"matchExpressions": [("a", "NotIn", ["1"])]}, {"a": "1"}, False, id="not in"),
        pytest.param({"matchExpressions": [("a", "Exists", [])]}, {"a": ""}, True, id="exists"),
        pytest.param({"matchExpressions": [("a", "Exists", [])]}, {}, False, id="exists not"),
        pytest.param({"matchExpressions": [("a", "DoesNotExist", [])]}, {}, True, id="does not exist"),
        pytest.param({"matchExpressions": [("a", "DoesNotExist", [])]}, {"a": ""}, False, id="does exist"),
    ],
)
def test_a_selector_reads_as_kubernetes_reads_it(
    selector: dict[str, Any], labels: Mapping[str, str], *, selected: bool
) -> None:
    keys = ("key", "operator", "values")
    expressions = [
        dict(zip(keys, match_expression, strict=True))
        for match_expression in selector.get("matchExpressions", ())
    ]
    parsed = NodeSelector.model_validate({**selector, "matchExpressions": expressions})
    assert parsed.selects(labels) is selected


def test_a_node_belongs_to_the_first_rule_that_matches_it() -> None:
    everything = {"selector": {"matchLabels": {"gpu": "yes"}}}
    first, second = rule("gpu-1", reservedMemory="1Gi"), rule(**everything)
    asked = policy("default", first, second)
    nodes = [node("gpu-1", labels={"gpu": "yes"}), node("gpu-2", labels={"gpu": "yes"}), node("cpu-1")]
    enabled = assign(snapshot(asked, nodes), asked).enabled
    assert asked.spec is not None
    rules = asked.spec.nodes
    reserved = {name: rules[position].reserved_memory for name, position in enabled.items()}
    assert reserved == {"gpu-1": "1Gi", "gpu-2": "0"}


def test_mode_off_takes_a_node_out_that_a_later_rule_selects() -> None:
    asked = policy("default", rule("gpu-1", mode="Off"), rule("gpu-1", "gpu-2"))
    assert assign(snapshot(asked, node("gpu-1"), node("gpu-2")), asked).enabled.keys() == {"gpu-2"}


class TestConflict:
    """Two policies never share a node."""

    older = policy("older", created=0)
    younger = policy("younger", created=1)

    def of(self, name: str, *seen: Any) -> Assignment:
        world = snapshot(self.older, self.younger, node("gpu-1"), *seen)
        return assign(world, world.policies[name])

    def test_the_older_policy_wins(self) -> None:
        assert self.of("older").enabled.keys() == {"gpu-1"}
        assert self.of("older").lost == {}

    def test_the_younger_one_knows_to_whom_it_lost(self) -> None:
        assert self.of("younger").enabled == {}
        assert self.of("younger").lost == {"gpu-1": "older"}

    def test_of_the_same_age_the_name_decides(self) -> None:
        twin = policy("aaa", created=0)
        assert assign(snapshot(self.older, twin, node("gpu-1")), self.older).lost == {"gpu-1": "aaa"}

    def test_off_does_not_claim(self) -> None:
        off = policy("older", rule("gpu-1", mode="Off"))
        assert self.of("younger", off).enabled.keys() == {"gpu-1"}

    @pytest.mark.parametrize(
        "held",
        [
            pytest.param(share("gpu-1", older), id="share node"),
            pytest.param(node("gpu-1", "older"), id="label"),
            pytest.param(plugin_pod("gpu-1", "older"), id="running plugin"),
        ],
    )
    def test_a_node_changes_hands_only_when_nothing_of_the_former_is_left(self, held: Any) -> None:
        going = policy("older", deleting=True)
        waiting = self.of("younger", going, held)
        assert (waiting.enabled, waiting.lost, waiting.waiting) == ({}, {}, {"gpu-1": "older"})
        assert self.of("younger", going).enabled.keys() == {"gpu-1"}

    @pytest.mark.parametrize(
        "edited",
        [
            pytest.param(policy("older", spec=spec_of_volcano(rule("gpu-1", **SLICED))), id="unserved"),
            pytest.param(policy("older", spec=None), id="unreadable"),
        ],
    )
    def test_what_the_older_policy_has_in_force_stays_its_own(self, edited: PolicyObject) -> None:
        held = share("gpu-1", self.older)
        world = snapshot(edited, self.younger, node("gpu-1"), held)
        assert assign(world, edited) == Assignment(kept=frozenset({"gpu-1"}))
        assert assign(world, self.younger).lost == {"gpu-1": "older"}

    def test_an_edit_that_cannot_be_applied_takes_no_node_from_a_policy_in_force(self) -> None:
        edited = policy("older", spec=spec_of_volcano(rule("gpu-1", **SLICED)))
        world = snapshot(edited, self.younger, node("gpu-1"), share("gpu-1", self.younger))
        assert assign(world, edited) == Assignment()
        assert assign(world, self.younger).enabled.keys() == {"gpu-1"}

    def test_a_policy_that_goes_has_no_nodes(self) -> None:
        assert self.of("older", policy("older", deleting=True)) == Assignment()


names = st.sampled_from(["gpu-1", "gpu-2", "gpu-3"])
rules = st.lists(
    st.builds(rule, names, mode=st.sampled_from(["Memory", "Off", "Mixed"])), min_size=1, max_size=4
)


@given(st.lists(st.tuples(rules, st.integers(0, 3), st.booleans()), max_size=4))
def test_no_node_ever_has_two_policies(asked: list[Any]) -> None:
    policies = [
        policy(f"p{at}", *wanted, created=age, deleting=goes) for at, (wanted, age, goes) in enumerate(asked)
    ]
    world = snapshot(policies, [node(name) for name in ("gpu-1", "gpu-2", "gpu-3")])
    sharing = [name for claimant in policies for name in assign(world, claimant).sharing]
    assert len(sharing) == len(set(sharing))
