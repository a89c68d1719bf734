"""BooksAgree: who sees that books differ, what is said of it, and when that is said no longer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    node,
    plugin_pod,
    policy,
    rule,
    serving,
    share,
    share_condition,
    snapshot,
)

from gpushare_core.api.names import BOOKS_LEASE
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.extender_report import (
    BELIEVED_FOR,
    ExtenderReport,
    decode_reports,
    encode_report,
    make_report,
    report_key,
)
from gpushare_operator.cluster.objects import CallsObject, PolicyObject
from gpushare_operator.cluster.readers.extender_leases import read_calls
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.status.conditions.books_agree import books_agree, seconds_until_reports_end
from gpushare_operator.status.events import events_for
from gpushare_operator.status.nodes.node_reports import policy_nodes
from gpushare_operator.status.policy import policy_status

BOTH = policy("default", rule("gpu-1", "gpu-2"))


def difference(node: str = "gpu-1", sentence: str = "card 0 has 20 of 16 units", **extra: Any) -> Difference:
    return Difference(**{"node": node, "kind": DifferenceKind.SUMS_DIFFER, "sentence": sentence, **extra})


def report(**nodes: str) -> ExtenderReport:
    named = {name.replace("_", "-"): text for name, text in nodes.items()}
    return ExtenderReport(by="cp-1_x", at=NOW, nodes=named)


def lease(*reports: ExtenderReport) -> CallsObject:
    return CallsObject(name=BOOKS_LEASE, reports=reports)


def seen(*objects: Any) -> ClusterSnapshot:
    return snapshot(serving(BOTH, "gpu-1", "gpu-2"), *objects)


def said(*objects: Any, after: timedelta = timedelta()) -> str:
    shown = seen(*objects)
    state = books_agree(shown, policy_nodes(shown, BOTH), NOW + after)
    return f"{state.status} {state.reason}: {state.message}"


def ledger(status: str, message: str = "") -> Mapping[str, Any]:
    return {**share_condition("Registered"), **share_condition("LedgerInSync", message, status=status)}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], "True BooksSayTheSame: all records of 2 nodes agree", id="agreed"),
        pytest.param(
            [share("gpu-2", BOTH, conditions=ledger("False", "annotations differ"))],
            "False BooksDiffer: gpu-2: Because: annotations differ",
            id="a plugin says so",
        ),
        pytest.param(
            [share("gpu-1", BOTH, differences=(difference(),))],
            "False BooksDiffer: gpu-1: card 0 has 20 of 16 units",
            id="within a GPUShareNode",
        ),
        pytest.param(
            [share("gpu-1", BOTH, differences=(difference(), difference(card="b")))],
            "False BooksDiffer: gpu-1: card 0 has 20 of 16 units (and 1 more in its GPUShareNode)",
            id="the rest is counted",
        ),
        pytest.param(
            [lease(report(gpu_1="pod a/b has 4 units", gpu_2=""))],
            "False BooksDiffer: gpu-1: the extender of cp-1 sees: pod a/b has 4 units; gpu-2: the extender of"
            " cp-1 sees: its ledger and the other records differ: see its /gpushare/inspect",
            id="the extender says so",
        ),
        pytest.param(
            [lease(report(other="x"))],
            "True BooksSayTheSame: all records of 2 nodes agree",
            id="of others' nodes",
        ),
        pytest.param(
            [
                share("gpu-1", BOTH, conditions=ledger("False", "it"), differences=(difference(),)),
                lease(report(gpu_1="x")),
            ],
            "False BooksDiffer: gpu-1: Because: it",
            id="who sees most is heard",
        ),
        pytest.param(
            [share("gpu-2", BOTH, conditions=ledger("Unknown", "the kubelet is silent"))],
            "Unknown BooksNotSeen: it is unknown what the kubelet has given out: gpu-2: Because: the"
            " kubelet is"
            " silent",
            id="a plugin does not know",
        ),
        pytest.param(
            [share("gpu-2", BOTH, conditions={})],
            "Unknown BooksNotSeen: it is unknown what the kubelet has given out: gpu-2: its plugin has not"
            " answered yet",
            id="a plugin has not answered",
        ),
        pytest.param(
            [plugin_pod("gpu-2", ready=False, waiting="CrashLoopBackOff: back-off 5m0s")],
            "Unknown BooksNotSeen: it is unknown what the kubelet has given out: gpu-2: its plugin does not"
            " run, and its GPUShareNode is out of date: CrashLoopBackOff: back-off 5m0s",
            id="a plugin was killed",
        ),
        pytest.param(
            [plugin_pod("gpu-2", ready=False)],
            "Unknown BooksNotSeen: it is unknown what the kubelet has given out: gpu-2: its plugin does not"
            " run, and its GPUShareNode is out of date: its pod is not Ready",
            id="a plugin hangs",
        ),
        pytest.param(
            [plugin_pod("gpu-2", ready=False), plugin_pod("gpu-2", name="next")],
            "True BooksSayTheSame: all records of 2 nodes agree",
            id="the plugin before it ends",
        ),
        pytest.param(
            [plugin_pod("gpu-2", ready=False), lease(report(gpu_2="pod a/b is gone"))],
            "False BooksDiffer: gpu-2: the extender of cp-1 sees: pod a/b is gone",
            id="who notices that a plugin hangs is heard",
        ),
        pytest.param(
            [
                plugin_pod("gpu-2", ready=False),
                share("gpu-2", BOTH, conditions=ledger("False", "annotations differ")),
            ],
            "False BooksDiffer: gpu-2: Because: annotations differ",
            id="what a plugin said before it was killed stands",
        ),
        pytest.param(
            [node("gpu-2", "default", ready=False), lease(report(gpu_2="bound, and not admitted"))],
            "Unknown BooksNotSeen: it is unknown what the kubelet has given out: gpu-2: the node itself is"
            " not"
            " Ready",
            id="a node died with pods on their way",
        ),
        pytest.param(
            [
                share("gpu-2", BOTH, conditions=ledger("Unknown", "the kubelet is silent")),
                lease(report(gpu_2="bound, and not admitted")),
            ],
            "Unknown BooksNotSeen: it is unknown what the kubelet has given out: gpu-2: Because: the"
            " kubelet is"
            " silent",
            id="a kubelet is silent while pods are on their way",
        ),
        pytest.param(
            [node("gpu-2", "default", ready=False), share("gpu-1", BOTH, differences=(difference(),))],
            "False BooksDiffer: gpu-1: card 0 has 20 of 16 units",
            id="a difference counts more than what is not seen",
        ),
    ],
)
def test_what_is_said(objects: Sequence[Any], expected: str) -> None:
    assert said(*objects) == expected


def test_without_a_node_there_are_no_books() -> None:
    alone = policy()
    shown = snapshot(alone)
    assert books_agree(shown, policy_nodes(shown, alone), NOW).reason == "BooksNotSeen"


def test_of_many_nodes_the_first_are_told_of() -> None:
    names = [f"gpu-{number}" for number in range(8)]
    many = policy("default", rule(*names))
    shown = snapshot(serving(many, *names), lease(report(**{f"gpu_{n}": "x" for n in range(8)})))
    message = books_agree(shown, policy_nodes(shown, many), NOW).message
    assert message.startswith("gpu-0: the extender of cp-1 sees: x; gpu-1: ")
    assert message.endswith(" and 3 more")


def test_a_dead_extender_is_believed_no_longer() -> None:
    stale = lease(report(gpu_1="x"))
    assert said(stale, after=BELIEVED_FOR - timedelta(seconds=1)).startswith("False")
    assert said(stale, after=BELIEVED_FOR).startswith("True")
    assert seconds_until_reports_end(seen(stale), NOW + timedelta(minutes=1)) == 240
    assert seconds_until_reports_end(seen(stale), NOW + BELIEVED_FOR) is None


def test_of_two_extenders_each_is_heard_and_the_text_does_not_alternate() -> None:
    other = replace(report(gpu_1="theirs", gpu_2="also"), by="cp-2_y")
    texts = {
        said(lease(*reports)) for reports in ([report(gpu_1="ours"), other], [other, report(gpu_1="ours")])
    }
    assert texts == {
        "False BooksDiffer: gpu-1: the extender of cp-1 sees: ours; gpu-2: the extender of cp-2 sees: also"
    }


def test_a_report_is_read_as_it_was_written() -> None:
    written = make_report([difference(), difference(card="b"), difference("n2")], by="cp-1_x", at=NOW)
    annotations = {
        report_key("cp-1_x"): encode_report(written),
        report_key("cp-2_y"): "no JSON",
        "other": "x",
    }
    assert decode_reports(annotations) == {report_key("cp-1_x"): written}
    assert written.nodes == {
        "gpu-1": "card 0 has 20 of 16 units (and 1 more there)",
        "n2": "card 0 has 20 of 16 units",
    }
    body = {"metadata": {"name": BOOKS_LEASE, "annotations": annotations}}
    assert read_calls(body).reports == (written,)


def test_the_next_extender_of_a_host_takes_the_place_of_the_one_before() -> None:
    assert report_key("cp-1_x") == report_key("cp-1_y") != report_key("cp-2_x")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        pytest.param("n" * 58, "x" * 500, id="usual"),
        pytest.param("n" * 248, "x" * 500, id="names as long as may be"),
        pytest.param("n", "\u0000" * 50_000, id="sentences that are longer as JSON"),
    ],
)
def test_great_reports_of_five_extenders_fit_one_object(name: str, sentence: str) -> None:
    many = [difference(f"{name}{number:05}", sentence) for number in range(5000)]
    made = make_report(many, by="cp-1_x", at=NOW)
    assert 5 * len(encode_report(made).encode()) < 256 * 1024
    assert len(made.nodes) > 5


def events(*snapshots: ClusterSnapshot) -> list[str]:
    """Those of the last step."""
    *_, (policy_before, status) = steps(snapshots)
    return [f"{event['type']} {event['reason']}" for event in events_for(policy_before, status, NOW)]


def steps(snapshots: Sequence[ClusterSnapshot]) -> Iterator[tuple[PolicyObject, PolicyStatus]]:
    """Yields the policy before each one, and its status after it."""
    known = BOTH
    for current in snapshots:
        status = policy_status(current, known, INSTALLATION, now=NOW)
        yield known, status
        known = replace(known, status=status)


def test_both_turning_points_are_told_and_nothing_else() -> None:
    agreed, differing = seen(), seen(lease(report(gpu_1="x")))
    unseen = seen(share("gpu-2", BOTH, conditions=ledger("Unknown")))
    assert events(agreed, differing) == ["Warning BooksDiffer"]
    assert events(differing, agreed) == ["Normal BooksAgree"]
    assert events(unseen, agreed) == events(agreed, unseen) == []


def test_a_difference_that_is_over_while_nobody_saw_it_is_told_to_be() -> None:
    """As where a kubelet is restarted in between."""
    agreed, differing = seen(), seen(lease(report(gpu_1="x")))
    unseen = seen(share("gpu-2", BOTH, conditions=ledger("Unknown")))
    assert events(differing, unseen) == []
    assert events(differing, unseen, agreed) == ["Normal BooksAgree"]
    assert events(differing, unseen, unseen, agreed) == ["Normal BooksAgree"]
    assert events(differing, unseen, agreed, unseen, agreed) == []


def test_a_difference_keeps_nobody_waiting() -> None:
    conditions = policy_status(seen(lease(report(gpu_1="x"))), BOTH, INSTALLATION, now=NOW).conditions
    statuses = {condition.type: condition.status for condition in conditions}
    assert (statuses["Ready"], statuses["Degraded"], statuses["BooksAgree"]) == ("True", "False", "False")
