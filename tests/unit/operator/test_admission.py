"""What admission policies are told by the marks of one policy."""

from typing import Any

from tests.samples.operator import node, policy, rule, share, snapshot, spec

from gpushare_core.api.names import ADMISSION_LABEL, SERVED_ANNOTATION
from gpushare_operator.actions import MarkPolicy
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.decide.admission import mark_policies


def asking(name: str, visible_devices: str, **fields: Any) -> PolicyObject:
    asked = spec(rule("gpu-1"), admission={"visibleDevices": visible_devices})
    return policy(name, spec=asked, **fields)


def marks(strictest: str, served: str) -> dict[str, str]:
    return {ADMISSION_LABEL: strictest, SERVED_ANNOTATION: served}


def marked(name: str, strictest: str | None, served: str | None) -> MarkPolicy:
    return MarkPolicy(name, f"uid-{name}", {ADMISSION_LABEL: strictest}, {SERVED_ANNOTATION: served})


MEMORY = "gpushare.io/memory"


def test_the_policy_says_what_its_nodes_serve() -> None:
    default = policy()
    assert [*mark_policies(snapshot(default, share("gpu-1", default)))] == [
        marked("default", "Allow", MEMORY)
    ]


def test_what_others_offer_is_served_too() -> None:
    default = policy()
    other = node("gpu-9", offered=("nvidia.com/gpu", "aliyun.com/gpu-mem"), zeros={"aliyun.com/gpu-mem"})
    (found,) = mark_policies(snapshot(default, share("gpu-1", default), other))
    assert found.annotations == {SERVED_ANNOTATION: f"{MEMORY},nvidia.com/gpu"}


def test_where_no_node_shares_its_cards_nothing_is_said() -> None:
    assert [*mark_policies(snapshot(policy(), node("gpu-1")))] == []
    stale = policy(marks=marks("Deny", MEMORY))
    assert [*mark_policies(snapshot(stale, node("gpu-1")))] == [marked("default", None, None)]


def test_what_is_said_already_is_not_said_again() -> None:
    default = policy(marks=marks("Allow", MEMORY))
    assert [*mark_policies(snapshot(default, share("gpu-1", default)))] == []


def test_the_oldest_says_the_strictest_that_any_asks_for() -> None:
    old, new = asking("old", "Warn"), asking("new", "Deny", created=5)
    assert [*mark_policies(snapshot(new, old, share("gpu-1", old)))] == [marked("old", "Deny", MEMORY)]


def test_one_that_goes_leaves_it_to_the_next() -> None:
    old = asking("old", "Deny", deleting=True, marks=marks("Deny", MEMORY))
    new = asking("new", "Warn", created=5)
    assert [*mark_policies(snapshot(new, old, share("gpu-1", old)))] == [
        marked("old", None, None),
        marked("new", "Warn", MEMORY),
    ]


def test_a_younger_one_loses_its_marks() -> None:
    old = policy("old", marks=marks("Allow", MEMORY))
    new = policy("new", created=5, marks=marks("Allow", MEMORY))
    assert [*mark_policies(snapshot(new, old, share("gpu-1", old)))] == [marked("new", None, None)]


def test_one_that_is_not_in_force_yet_says_nothing() -> None:
    old, new = policy("old", finalizers=()), policy("new", created=5)
    assert [*mark_policies(snapshot(new, old, share("gpu-1", new)))] == [marked("new", "Allow", MEMORY)]
