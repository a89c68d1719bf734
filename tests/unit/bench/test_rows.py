"""What rows make of what they saw."""

from collections.abc import Sequence

import pytest
from bench.cluster.bench_cluster import bound, failed_binds
from bench.cluster.cluster_objects import Layout, node, node_name, pending_pod
from bench.cluster.waiting_pods import is_refused, too_many_cpus
from bench.measuring.figures import Figure, NotMeasuredError, at_least
from bench.measuring.percentiles import Percentiles
from bench.readings.audit_log import Write
from bench.readings.card_sums import CardSums, overcommitted
from bench.readings.scheduler_metrics import (
    attempts,
    failed_attempts,
    heap,
    queued_between,
    refused_attempts,
    waiting_to_be_tried,
)
from bench.rows.candidates import Preferences, offer_figures, preferences
from bench.rows.churn import Churn, Resident, churn_figures, without
from bench.rows.one_node import UNITS, Placed, attempt_figures, is_bound
from bench.rows.pods import latency_figures, write_figures
from bench.rows.policy import bare_node, report
from bench.rows.programs.plugin_node import COARSE, allocated, bound_pod
from bench.rows.storm import storm_figures
from bench.rows.throughput import ordinary_figures
from bench.schedule_throughput import Throughput

from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json

WAIT = Percentiles(0.5, 0.9, 1.0)


def throughput(rate: float, *, created: int = 500, bound: int = 500) -> Throughput:
    return Throughput(created, bound, rate, WAIT)


def judged(figures: Sequence[Figure]) -> dict[str, bool]:
    return {figure.what: figure.reached for figure in figures if figure.reached is not None}


def of(figures: Sequence[Figure], what: str) -> float:
    return next(figure.measured for figure in figures if figure.what == what)


def test_ordinary_pods_are_compared_by_medians() -> None:
    without_us = [throughput(value) for value in (300, 400, 100)]
    with_us = [throughput(value) for value in (270, 290, 20)]
    figures = ordinary_figures(without_us, with_us, at_least(0.9))
    assert of(figures, "with us over without us") == 0.9
    assert judged(figures) == {"with us over without us": True}


def test_a_rate_of_some_of_the_pods_is_none() -> None:
    assert bound(throughput(100)).rate == 100
    with pytest.raises(NotMeasuredError, match="499 of 500 pods were bound in time"):
        bound(throughput(100, bound=499))


@pytest.mark.parametrize(
    ("run", "cards", "failed", "missed"),
    [
        pytest.param(throughput(100), 0, 0, [], id="all right"),
        pytest.param(
            throughput(100, bound=499), 0, 0, ["bound of 500 pods created at once"], id="one is left"
        ),
        pytest.param(throughput(100), 1, 0, ["cards given out beyond their size"], id="a card too full"),
        pytest.param(throughput(100), 0, 2, ["binds that failed"], id="binds that failed"),
    ],
)
def test_how_a_storm_ends(run: Throughput, cards: int, failed: int, missed: list[str]) -> None:
    found = judged(storm_figures(run, overcommitted_cards=cards, failed=failed))
    assert [what for what, reached in found.items() if not reached] == missed


def test_binds_fail_only_since_the_first_reading() -> None:
    metric = "gpushare_extender_binds_total"
    before = f'{metric}{{result="Bound"}} 10\n{metric}{{result="Refused"}} 2\n'
    after = f'{metric}{{result="Bound"}} 99\n{metric}{{result="Refused"}} 3\n{metric}{{result="Error"}} 4\n'
    assert failed_binds(after) - failed_binds(before) == 5


def on_card(name: str, units: int) -> Json:
    pod = bound_pod(name, COARSE, "GPU-1")
    key, text = GPUSHARE.allocation_annotation, pod["metadata"]["annotations"][GPUSHARE.allocation_annotation]
    pod["metadata"]["annotations"] = {key: text.replace('"GPU-1":1', f'"GPU-1":{units}')}
    return pod


def test_cards_are_summed_over_the_annotations_of_all_pods() -> None:
    ordinary = {"metadata": {"name": "x", "uid": "x"}}
    assert overcommitted([on_card("a", 10), on_card("b", 6), ordinary], 16) == []
    assert overcommitted([on_card("a", 10), on_card("b", 7)], 16) == ["GPU-1"]


def test_a_card_that_was_too_full_for_a_moment_is_remembered() -> None:
    sums = CardSums(16)
    for pod in (on_card("a", 10), on_card("a", 10), on_card("b", 6)):
        sums.see(pod)
    assert not sums.over, "each pod counts once"
    sums.forget(on_card("a", 10))
    sums.see(on_card("c", 10))
    assert not sums.over
    sums.see(on_card("d", 1))
    sums.forget(on_card("d", 1))
    assert sums.over == {"GPU-1"}


def test_latency_is_compared_at_both_percentiles() -> None:
    figures = latency_figures(Percentiles(100, 200, 300), Percentiles(105, 240, 300))
    assert judged(figures) == {"shared over plain: p50": True, "shared over plain: p99": False}


def test_writes_are_counted_per_pod_and_in_quiet_none_may_be() -> None:
    running = [
        *[Write("extender", "create", "pods/binding")] * 4,
        *[Write("plugin", "patch", "gpusharenodes/status")] * 6,
        *[Write("extender", "update", "leases")] * 9,
    ]
    quiet = [Write("operator", "update", "leases"), Write("plugin", "patch", "gpusharenodes/status")]
    figures = write_figures(running, quiet, pods=4, seconds=8)
    assert [(figure.what, figure.measured, figure.reached) for figure in figures] == [
        ("by the extender per pod (pods/binding 4)", 1.0, True),
        ("by the plugin per pod (gpusharenodes/status 6)", 1.5, False),
        ("by the operator per pod", 0.0, None),
        ("in 8 s of quiet, by all programs", 1, False),
        ("to Leases in 8 s of quiet", 1, None),
    ]


def test_an_audit_log_without_a_binding_is_no_witness() -> None:
    with pytest.raises(NotMeasuredError, match="no write of the extender"):
        write_figures([Write("plugin", "patch", "gpusharenodes/status")], [], pods=4, seconds=8)


def test_nodes_without_a_kubelet_take_only_what_tolerates_them() -> None:
    taints = [*node(0, Layout(nodes=1))["spec"]["taints"], *bare_node(0)["spec"]["taints"]]
    (toleration,) = pending_pod("a")["spec"]["tolerations"]
    assert {(taint["key"], taint["effect"]) for taint in taints} == {
        (toleration["key"], toleration["effect"])
    }


def difference(node: str) -> Difference:
    return Difference(node=node, kind=DifferenceKind.STALE_HOLDER, pod="a", sentence=f"{node} counts a")


def test_only_differences_that_churn_brought_count() -> None:
    new = without([difference("n1"), difference("n2")], [difference("n1")])
    assert [value.node for value in new] == ["n2"]
    latency = (Percentiles(10, 20, 30), Percentiles(11, 30, 30))
    figures = churn_figures(Resident("extender", 100.0, 104.0), latency, new, over=["GPU-1"], pods=72_000)
    assert of(figures, "extender at the end") == 104
    reached = judged(figures)
    assert (reached["memory, end over begin"], reached["p50, end over begin"]) == (True, True)
    assert not reached["p99, end over begin"]
    assert not reached["cards given out beyond their size at any moment"]
    assert [what for what in reached if what.startswith("differences") and "n2 counts a" in what]


def test_a_pod_of_the_churn_that_was_never_bound_is_no_latency(unconnected: Churn) -> None:
    unconnected.created = {"a": 1.0, "b": 2.0, "c": 30.0}
    unconnected.bound = {"a": 1.5, "b": 4.0}
    assert unconnected.waits(0, 10).highest == 2000
    with pytest.raises(NotMeasuredError, match="1 of 1 pods were never bound"):
        unconnected.waits(10, 40)
    with pytest.raises(NotMeasuredError, match="0 of 0"):
        unconnected.waits(50, 60)


@pytest.fixture
def unconnected() -> Churn:
    return Churn(client=None, scheduler="", cards=CardSums(16))  # type: ignore[arg-type]


def test_what_kube_scheduler_says_of_a_pod() -> None:
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    assert is_refused({"spec": {}, "status": {"conditions": [refused]}})
    assert not is_refused({"spec": {}, "status": {}})
    assert is_bound({"spec": {"nodeName": "n"}})
    assert not is_bound({"spec": {}})


@pytest.mark.parametrize(
    ("found", "told"),
    [
        pytest.param(
            [
                Placed(was_refused=False, attempts=1.0, seconds=0.1),
                Placed(was_refused=True, attempts=3.0, seconds=0.4),
            ],
            [1, 3.0, 0.4],
            id="counted",
        ),
        pytest.param([Placed(was_refused=False, attempts=None, seconds=0.1)] * 2, [2, 0.1], id="watched"),
    ],
)
def test_pods_that_were_refused_before_were_not_bound_at_once(found: list[Placed], told: list[float]) -> None:
    figures = attempt_figures(found, nodes=1001)
    assert [figure.measured for figure in figures] == told
    assert figures[0].target == at_least(2)


def test_no_node_of_the_usual_layout_takes_what_one_node_is_to_take() -> None:
    layout = Layout(nodes=20)
    assert {layout.most_free(node) < UNITS for node in range(20)} == {True}
    sums = [128 - sum(pod.units for pod in layout.pods(node)) for node in range(20)]
    assert min(sums) >= UNITS, "by the sum of its cards kube-scheduler takes each of them"


def test_every_report_of_a_plugin_changes_something() -> None:
    assert report(1) != report(2)
    assert allocated(report(5)) == 5
    assert allocated({}) == 0


def test_nodes_for_a_policy_offer_nothing_of_ours_yet() -> None:
    assert GPUSHARE.memory_resource not in bare_node(3)["status"]["capacity"]


def test_preferences_by_the_nodes_on_which_pods_run() -> None:
    """Of 40 nodes 0 and 20 have the image; zones are every third node."""
    with_image = [node_name(value) for value in (0, 0, 20, 1)]
    spread = [node_name(value) for value in (0, 3, 6, 1)]
    assert preferences(40, with_image=with_image, spread=spread) == Preferences(at_image=3, skew=3)


def test_what_is_offered_is_compared_by_medians() -> None:
    found = {0: Preferences(60, 0), 16: Preferences(40, 5)}
    figures = offer_figures({0: [10, 30, 20], 16: [90, 80, 99]}, found, plain=Preferences(59, 1))
    assert of(figures, "all offered: shared pods") == 20
    assert of(figures, "16 offered: shared pods") == 90
    assert of(figures, "16 offered: of 60 that run where their image is") == 40
    assert of(figures, "plain pods: skew of 60 over 3 zones") == 1


SCHEDULER = """
scheduler_pending_pods{queue="active"} 3
scheduler_pending_pods{queue="backoff"} 4
scheduler_pending_pods{queue="unschedulable"} 90
scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 10
scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 7
"""


def test_pods_that_wait_for_an_event_are_not_about_to_be_tried() -> None:
    assert waiting_to_be_tried(SCHEDULER) == 7


def test_attempts_count_however_they_end() -> None:
    assert attempts(SCHEDULER) == 17


def test_attempts_that_found_no_node_are_told_from_those_that_failed() -> None:
    failed = 'scheduler_schedule_attempts_total{profile="x",result="error"} 3'
    assert (refused_attempts(SCHEDULER + failed), failed_attempts(SCHEDULER + failed)) == (7, 3)
    assert (refused_attempts(""), failed_attempts("")) == (0, 0)


def test_what_queued_pods_is_counted_between_two_readings() -> None:
    metric = "scheduler_queue_incoming_pods_total"
    before = f'{metric}{{event="PodAdd",queue="active"}} 5\n'
    after = f'{metric}{{event="PodAdd",queue="active"}} 5\n'
    after += f'{metric}{{event="NodeAdd",queue="active"}} 2\n{metric}{{event="NodeAdd",queue="backoff"}} 1\n'
    assert queued_between(before, after) == {"NodeAdd": 3}


def test_the_heap_is_told_in_mebibytes() -> None:
    assert heap("go_memstats_heap_alloc_bytes 2.097152e+06\n") == 2


def test_a_pod_that_lacks_cpu_asks_for_nothing_of_ours() -> None:
    (container,) = too_many_cpus("a")("unfit")["spec"]["containers"]
    assert {name: amounts["cpu"] for name, amounts in container["resources"].items()} == {
        "limits": "500",
        "requests": "500",
    }
    assert GPUSHARE.memory_resource not in container["resources"]["limits"]
