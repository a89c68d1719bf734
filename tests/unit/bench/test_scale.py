"""What rows ``scale`` make of sizes, and of what other processes print."""

import argparse
import asyncio
from pathlib import Path

import pytest
from bench import scale
from bench.cluster.cluster_objects import Layout
from bench.filter_latency import FilterLatency
from bench.ledger_steps import steps
from bench.measuring.percentiles import Percentiles
from bench.measuring.size import FULL
from bench.operator_changes import Cost, Measurement, as_json, cluster_alone
from bench.peers.objects import Objects, Place, Wanted
from bench.peers.operator_cluster import POLICY, MemoryCluster
from bench.peers.programs import ProgramEndedError, json_of
from bench.readings.process_use import reset_peak
from bench.rows.programs import scale_extender, scale_operator
from bench.rows.programs.scale import stages

from gpushare_core.kube import paths


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        pytest.param(60, 60, id="all of a small cluster"),
        pytest.param(150, 100, id="never fewer than 100"),
        pytest.param(5_000, 500, id="a tenth"),
        pytest.param(50_000, 2_500, id="never less than a twentieth"),
    ],
)
def test_as_many_nodes_are_asked_about_as_kube_scheduler_would(nodes: int, found: int) -> None:
    assert scale_extender.sampled(nodes) == found


def test_pods_that_pass_by_come_where_there_is_room_and_not_twice_to_the_same_place() -> None:
    layout = Layout(nodes=30)
    pods = [scale_extender.passing_pod(layout, number) for number in range(40)]
    assert not [pod for pod in pods if layout.is_full(pod.node)]
    assert len({pod.name for pod in pods}) == 40
    assert len({pod.node for pod in pods[:6]}) == 6
    assert scale_extender.passing_pod(Layout(nodes=2), 3).node <= 1


def test_what_a_filter_costs_on_the_wire_is_shown_as_well() -> None:
    latency = FilterLatency(2_500, 2_000, 16, Percentiles(1, 2, 3), request_size=2048, answer_size=4096)
    shown = {
        latency_figure.what: latency_figure.measured
        for latency_figure in scale_extender.latency_figures(latency)
    }
    assert shown["filter, 2,500 names: p99"] == 2
    assert shown["filter, 2,500 names: request"] == 2
    assert shown["filter, 2,500 names: answer"] == 4


def test_only_a_wait_that_kube_scheduler_gives_up_misses_its_target() -> None:
    reached = {wait.what: wait.reached for wait in scale_extender.waits("filter", [1.0, 6000.0], longest=5e3)}
    assert reached == {"filter: p50": None, "filter: longest": False}


def test_sizes_are_measured_from_the_smallest_on() -> None:
    names = [stage.name for stage in stages(FULL)]
    assert names[0] == "an extender with 5,000 nodes"
    assert names[-1] == "50,000 nodes in memory"


def test_sizes_of_ones_own() -> None:
    assert scale.parse(["--nodes", "100,200"]).nodes == (100, 200)
    assert scale.parse([]).nodes == FULL.scale_nodes


@pytest.mark.parametrize("text", ["many", "", "10,", "0"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        scale.numbers(text)


def test_every_step_of_an_extender_takes_some_time() -> None:
    taken = steps(Layout(nodes=20, pods_per_node=2))
    assert set(taken) >= {"the same list of pods again", "one round of the audit, all nodes due"}
    assert min(taken.values()) > 0


@pytest.mark.parametrize("printed", ["", "Traceback (most recent call last)", '{"a": 1}\nTraceback'])
def test_a_program_that_prints_no_figures_has_failed(printed: str) -> None:
    with pytest.raises(ProgramEndedError, match=r"bench\.x printed no figures"):
        json_of(printed, "bench.x")


def test_figures_come_after_what_else_was_printed() -> None:
    assert json_of('a warning\n{"resident": 3}\n', "bench.x") == {"resident": 3}


def cost(**changes: float) -> Cost:
    values: dict[str, float] = {"seconds": 10, "cpu": 1, "resident": 100, "peak": 120, "first": 0.5}
    given = values | changes
    return Cost(
        given["seconds"], given["cpu"], {}, int(given["resident"]), int(given["peak"]), given["first"]
    )


PHASES = ("start", "roll-out", "plugins answer", "changes", "changes of conditions", "read anew")


def test_the_cluster_does_not_count_as_the_operators_memory() -> None:
    cluster = MemoryCluster(Layout(nodes=3))
    cluster.put_policy()
    cluster.put_share_node(0, {"metadata": {"name": "bench-00000"}, "spec": {"policy": POLICY}})
    cluster.start_plugin(0)
    phases = {name: cost() for name in PHASES} | {"read anew": cost(peak=200)}
    found = as_json(Measurement(cluster, phases))
    shown = {
        figure.what: figure.measured
        for figure in scale_operator.figures(scale_operator.measured(1_000, found, {"resident": 30}))
    }
    assert shown["operator: resident"] == 70
    assert shown["operator: peak when everything is read anew"] == 170
    assert shown["20 changes/s of units: processor"] == 10
    assert shown["1,000 of them"] == pytest.approx(1_000 * found["sizes"]["GPUShareNode"] / 2**20)


def test_what_a_plugin_wrote_of_each_card_has_an_owner() -> None:
    """Half of the object: the list of cards is a map by its schema."""
    cluster = MemoryCluster(Layout(nodes=1))
    cluster.put_share_node(0, {"metadata": {"name": "bench-00000"}, "spec": {}})
    before = cluster.size_of(paths.SHARE_NODES, "bench-00000")
    cluster.start_plugin(0)
    assert cluster.size_of(paths.SHARE_NODES, "bench-00000") > before + 8 * 400


def test_a_cluster_alone_has_all_its_objects() -> None:
    assert cluster_alone(5) >= 0


def test_a_pod_of_which_only_metadata_is_kept_stays_on_its_node() -> None:
    objects, pod = Objects(), {"metadata": {"name": "a", "namespace": "default"}}
    objects.put(paths.PODS, pod, node="n1")
    _, changed = objects.put(paths.PODS, pod)
    assert changed.node == "n1"
    wanted = Wanted.of(Place(paths.PODS), {"fieldSelector": "spec.nodeName!="})
    assert [selected.name for selected in objects.selected(wanted, paths.PODS)] == ["a"]


def test_a_peak_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    reset_peak(7, proc=tmp_path)
    assert (tmp_path / "7" / "clear_refs").read_text() == "5"


async def test_a_process_that_goes_on_working_is_not_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(_: int, __: float) -> float:
        await asyncio.sleep(0)
        return 0.5

    monkeypatch.setattr(scale_extender, "share_of_core", busy)
    with pytest.raises(TimeoutError, match="without work it takes 50% of a core"):
        await scale_extender.rested(1, within=0.0)
