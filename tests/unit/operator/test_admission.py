"""What admission policies are told by the marks of one policy."""

from typing import Any

from tests.samples.operator import node, policy, rule, share, snapshot, spec

from gpushare_core.api.names import (
    ADMISSION_LABEL,
    ISOLATED_ANNOTATION,
    ISOLATION_ADMISSION_LABEL,
    SERVED_ANNOTATION,
)
from gpushare_operator.actions import MarkPolicy
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.decide.admission import mark_policies


def asking(name: str, visible_devices: str, **fields: Any) -> PolicyObject:
    asked = spec(rule("gpu-1"), admission={"visibleDevices": visible_devices})
    return policy(name, spec=asked, **fields)


def marks(strictest: str, served: str) -> dict[str, str]:
    return {ADMISSION_LABEL: strictest, SERVED_ANNOTATION: served}


def marked(
    name: str,
    strictest: str | None,
    served: str | None,
    *,
    bypass: str | None = None,
    isolated: str | None = None,
) -> MarkPolicy:
    labels = {ADMISSION_LABEL: strictest, ISOLATION_ADMISSION_LABEL: bypass}
    annotations = {SERVED_ANNOTATION: served, ISOLATED_ANNOTATION: isolated}
    return MarkPolicy(name, f"uid-{name}", labels, annotations)


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
    assert found.annotations[SERVED_ANNOTATION] == f"{MEMORY},nvidia.com/gpu"


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


NVML = {"source": "NVML"}


def isolating(name: str, *rules: Any, bypass: str = "Warn", **fields: Any) -> PolicyObject:
    given = rules or (rule("gpu-1", devices=NVML, isolation={"memory": "Hook"}),)
    asked = spec(*given, admission={"isolationBypass": bypass}, dialect=fields.pop("dialect", "gpushare.io"))
    return policy(name, spec=asked, **fields)


def found_for(*objects: Any) -> MarkPolicy:
    (found,) = mark_policies(snapshot(*objects))
    return found


def test_who_asks_for_isolation_is_said_with_what_is_served_so() -> None:
    asking_for_it = isolating("a")
    assert found_for(asking_for_it, share("gpu-1", asking_for_it)) == marked(
        "a", "Allow", MEMORY, bypass="Warn", isolated=MEMORY
    )


def test_what_is_allowed_to_get_round_it_is_the_strictest_of_those_that_ask_for_isolation() -> None:
    first, second = isolating("first", bypass="Allow"), isolating("second", bypass="Deny", created=5)
    other = asking("other", "Allow", created=9)
    objects = (first, second, other, share("gpu-1", first))
    assert found_for(*objects).labels[ISOLATION_ADMISSION_LABEL] == "Deny"
    assert found_for(first, other, share("gpu-1", first)).labels[ISOLATION_ADMISSION_LABEL] == "Allow"


def test_a_rule_whose_mode_is_off_asks_for_no_isolation() -> None:
    off = rule("gpu-2", mode="Off", devices=NVML, isolation={"memory": "Driver"})
    asked = isolating("a", rule("gpu-1"), off)
    assert found_for(asked, share("gpu-1", asked)) == marked("a", "Allow", MEMORY)


def test_only_what_is_served_with_isolation_is_named() -> None:
    """Others' ``nvidia.com/gpu`` and units of nodes without isolation are no affair of it."""
    cut = rule("gpu-2", mode="Slices", slicesPerCard=2, devices=NVML, isolation={"memory": "Hook"})
    asked = isolating("a", rule("gpu-1"), cut)
    sliced = share("gpu-2", asked, spec={**share("gpu-2", asked).spec, "mode": "Slices"})
    others = node("gpu-9", offered=("nvidia.com/gpu",))
    found = found_for(asked, share("gpu-1", asked), sliced, others)
    assert found.annotations[SERVED_ANNOTATION] == f"{MEMORY},gpushare.io/slice,nvidia.com/gpu"
    assert found.annotations[ISOLATED_ANNOTATION] == "gpushare.io/slice"


def test_isolated_units_are_named_in_the_words_of_their_dialect() -> None:
    asked = isolating("a", dialect="tuya.com")
    found = found_for(asked, share("gpu-1", asked))
    assert found.annotations[ISOLATED_ANNOTATION] == "tuya.com/vcuda-memory"


def test_a_rule_for_nodes_that_share_nothing_yet_isolates_nothing() -> None:
    cut = rule("gpu-2", mode="Slices", slicesPerCard=2, devices=NVML, isolation={"memory": "Hook"})
    asked = isolating("a", rule("gpu-1"), cut)
    assert found_for(asked, share("gpu-1", asked)) == marked("a", "Allow", MEMORY)
