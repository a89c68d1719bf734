"""The table of problems has the words of the programs that write conditions."""

from pathlib import Path

import pytest

from gpushare_cli.decide.inspection.shared_node import UNAVAILABLE
from gpushare_cli.decide.objects.pod_event import EVICTED_FOR_MEMORY
from gpushare_cli.decide.problems import policies
from gpushare_cli.decide.problems.nodes import NOT_IN_SYNC, NOT_REGISTERED
from gpushare_operator.evictions import EVENT_REASONS
from gpushare_operator.policies import conditions
from gpushare_operator.process.leadership import LEASE_NAME
from gpushare_operator.status.refused_pods import PODS_REFUSED
from gpushare_plugin.decide.isolation import node_isolation

ROOT = Path(__file__).resolve().parents[4]
PLUGIN = "\n".join(
    path.read_text()
    for folder in ("plugin/gpushare_plugin", "operator/gpushare_operator")
    for path in (ROOT / folder).rglob("*.py")
)
REASONS = {value for value in vars(conditions).values() if isinstance(value, str)}
REASONS |= {PODS_REFUSED, "UnsupportedMode"}


def test_condition_types_are_those_of_the_operator() -> None:
    assert {type_ for type_, _ in policies.ROWS} <= REASONS
    assert {policies.READY, policies.DELETING, policies.NO_NODE_SHARES} <= REASONS


@pytest.mark.parametrize(
    "reason", sorted({reason for rows in policies.ROWS.values() for reason in rows} - {""})
)
def test_a_policy_can_have_this_reason(reason: str) -> None:
    assert reason in REASONS


@pytest.mark.parametrize("reason", sorted({*NOT_REGISTERED, *NOT_IN_SYNC}))
def test_a_node_can_have_this_reason(reason: str) -> None:
    assert f'"{reason}"' in PLUGIN


def test_the_event_of_an_eviction_is_the_operators() -> None:
    assert EVICTED_FOR_MEMORY in EVENT_REASONS.values()


def test_what_a_node_cannot_have_is_said_in_the_plugins_word() -> None:
    assert UNAVAILABLE == node_isolation.UNAVAILABLE


def test_the_lease_is_the_operators() -> None:
    from gpushare_cli.gather.status_facts import OPERATOR_LEASE

    assert OPERATOR_LEASE == LEASE_NAME
