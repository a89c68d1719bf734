"""What engines are compared by: configurations, objects, and what rows make of what they saw."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from bench.cluster.bench_cluster import UNITS
from bench.cluster.cluster_objects import NAMESPACE, Layout, PlacedPod, card_uuid, node_name, pending_pod
from bench.cluster.installation import policy, remove_admission, restore_admission
from bench.engines import claims, configuration, processor
from bench.engines.engine import CLAIMS, EXTENDER, IN_PLACE, PLUGIN, STOCK, judged
from bench.engines.nodes import Cards, binding
from bench.engines.processor import ProgramUse
from bench.engines.programs import CONFIGURATION, read_document
from bench.measuring.figures import Figure, NotMeasuredError, at_least, at_most
from bench.measuring.percentiles import Percentiles
from bench.rows.engines import exactness, preemption, resources, throughput, waiting
from bench.rows.engines.exactness import Burst
from bench.rows.engines.preemption import PLAIN, PRIORITIES, SHARED, Preempted, Tenant
from bench.rows.engines.resources import Memory
from bench.rows.engines.throughput import Taken, Turns
from bench.schedule_throughput import Throughput

from gpushare_core.allocation_annotation import decode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json

LAYOUT = Layout(nodes=20)


def by_name(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {figure.what: figure for figure in figures}


# Configurations


def test_the_plugin_is_run_as_the_products_own_configuration_says() -> None:
    written = read_document(CONFIGURATION)
    assert PLUGIN.configure is not None
    assert PLUGIN.configure(written) == written
    assert written["profiles"][0]["schedulerName"] == PLUGIN.scheduler == EXTENDER.scheduler


def test_in_kube_schedulers_place_nodes_are_sampled_as_without_us_and_the_plugin_stays() -> None:
    written = read_document(CONFIGURATION)
    assert IN_PLACE.configure is not None
    (before,), (after,) = written["profiles"], IN_PLACE.configure(written)["profiles"]
    assert before == {**after, "percentageOfNodesToScore": 5}
    assert "percentageOfNodesToScore" not in after
    assert "GPUShare" in yaml.safe_dump(after)


def test_without_the_plugin_nothing_but_the_name_is_configured() -> None:
    written = read_document(CONFIGURATION)
    assert STOCK.configure is not None
    bare = STOCK.configure(written)
    assert bare["profiles"] == [{"schedulerName": "gpushare-scheduler"}]
    assert bare["leaderElection"] == written["leaderElection"], "one of them places pods at a time"


def test_a_scheduler_outside_of_pods_has_a_client_without_limits() -> None:
    text = configuration.with_client({"kind": "KubeSchedulerConfiguration"}, Path("/run/kubeconfig"))
    assert yaml.safe_load(text) == {
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/run/kubeconfig", "qps": 2000, "burst": 2000},
    }


def test_a_kubeconfig_names_the_server_its_authority_and_the_token() -> None:
    found = configuration.kubeconfig(server="https://172.30.0.1:443", authority="Q0E=", token="abc")  # noqa: S106
    (cluster,), (user,) = found["clusters"], found["users"]
    assert cluster["cluster"] == {"server": "https://172.30.0.1:443", "certificate-authority-data": "Q0E="}
    assert user["user"] == {"token": "abc"}


@pytest.mark.parametrize(
    ("engine", "scheduler"),
    [
        pytest.param("Plugin", {"backend": "Dedicated", "engine": "Plugin"}, id="named"),
        pytest.param("", {"backend": "Dedicated"}, id="left to the product"),
    ],
)
def test_a_policy_names_the_engine_of_the_setting(engine: str, scheduler: Json) -> None:
    assert policy("Dedicated", engine)["spec"]["scheduler"] == scheduler


def test_admission_policies_are_put_back_as_they_were() -> None:
    cluster = PolicyServer()
    removed = remove_admission(cluster)  # type: ignore[arg-type]
    assert cluster.present == []
    restore_admission(cluster, removed)  # type: ignore[arg-type]
    assert cluster.present == [
        {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "a"}, "spec": {"policyName": "p"}},
        {"kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "b", "labels": {"c": "d"}}},
    ]


class PolicyServer:
    """Has bindings, and refuses new ones that say what is the API server's to say."""

    def __init__(self) -> None:
        first, second = {"name": "a", "uid": "1"}, {"name": "b", "labels": {"c": "d"}, "resourceVersion": "7"}
        self.present: list[Json] = [
            {"kind": "ValidatingAdmissionPolicyBinding", "metadata": first, "spec": {"policyName": "p"}},
            {"kind": "MutatingAdmissionPolicyBinding", "metadata": second},
        ]

    def kubectl(self, verb: str, *_: str, stdin: str = "") -> str:
        if verb == "delete":
            self.present = []
        if verb == "create":
            self.present += json.loads(stdin)["items"]
            assert not any({"uid", "resourceVersion"} & item["metadata"].keys() for item in self.present)
        return json.dumps({"kind": "List", "items": self.present})


# Claims


def test_cards_offer_to_claims_what_their_pods_leave_free() -> None:
    usual, full = (claims.resource_slice(index, LAYOUT)["spec"] for index in (0, 9))
    assert {device["capacity"]["memory"]["value"] for device in usual["devices"]} == {"12Gi"}
    assert {device["capacity"]["memory"]["value"] for device in full["devices"]} == {"2Gi"}
    assert [device["name"] for device in usual["devices"]] == [f"card-{card}" for card in range(8)]
    assert all(device["allowMultipleAllocations"] for device in usual["devices"])
    assert usual["nodeName"] == node_name(0)


def test_a_pod_with_a_claim_asks_for_nothing_of_ours() -> None:
    pod = CLAIMS.asking(pending_pod("a", units=CLAIMS.units))
    (container,) = pod["spec"]["containers"]
    assert GPUSHARE.memory_resource not in container["resources"]["limits"]
    (claim,) = pod["spec"]["resourceClaims"]
    assert container["resources"]["claims"] == [{"name": claim["name"]}]
    assert claim["resourceClaimTemplateName"] == claims.template(4)["metadata"]["name"]
    (request,) = claims.template(4)["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["capacity"] == {"requests": {"memory": "4Gi"}}
    assert request["exactly"]["deviceClassName"] == claims.device_class()["metadata"]["name"]


# Processors


@pytest.mark.parametrize(
    ("command_line", "name"),
    [
        (b"/cache/kube-scheduler\0--config=/x\0", "kube-scheduler"),
        (b"/venv/bin/python3\0/venv/bin/gpushare-extender\0--listen\0", "gpushare-extender"),
        (b"python3\0-E\0/venv/bin/gpushare-extender\0", "gpushare-extender"),
        (b"python3\0", "python3"),
        (b"", ""),
    ],
)
def test_programs_are_known_by_their_names_and_scripts_by_theirs(command_line: bytes, name: str) -> None:
    assert processor.name_of(command_line) == name


def test_what_programs_took_is_summed_over_their_processes() -> None:
    before = {1: ProgramUse("etcd", 5.0), 2: ProgramUse("kubelet", 1.0), 3: ProgramUse("kubelet", 2.0)}
    after = {1: ProgramUse("etcd", 6.0), 2: ProgramUse("kubelet", 1.5), 4: ProgramUse("kubelet", 0.25)}
    assert processor.between(before, after) == {"etcd": 1.0, "kubelet": 0.75}


def test_processes_below_one_are_read_and_no_others(tmp_path: Path) -> None:
    stat = "S " + " ".join(["0"] * 10) + " 200 100 0 0 0 0 0 0 0"
    for pid, parent, name in ((10, 1, "bench"), (11, 10, "supervisor"), (12, 11, "etcd"), (13, 1, "other")):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "status").write_text(f"Pid:\t{pid}\nPPid:\t{parent}\nNSpid:\t{pid}\n")
        (folder / "cmdline").write_bytes(f"/bin/{name}\0".encode())
        (folder / "stat").write_text(f"{pid} ({name}) {stat}")
    (tmp_path / "12" / "stat").write_text("")  # it has just ended
    seconds = 300 / os.sysconf("SC_CLK_TCK")
    assert processor.read(tmp_path, ancestor=10) == {11: ProgramUse("supervisor", seconds)}


# Throughput


def taken(rate: float, **cpu: float) -> Taken:
    return Taken(rate, Percentiles(0.1, 0.2, 0.3), cpu)


@pytest.mark.parametrize(("nodes", "reached"), [(100, False), (1000, False), (5000, True)])
def test_shared_pods_may_be_a_little_slower_at_5000_nodes(nodes: int, *, reached: bool) -> None:
    turns = Turns([taken(100, etcd=1), taken(90, etcd=3), taken(500, etcd=2)], [taken(92, etcd=4)])
    figures = by_name(throughput.engine_figures(PLUGIN, turns, nodes=nodes))
    assert figures["shared over plain"].measured == pytest.approx(0.92)
    assert figures["shared over plain"].reached is reached
    assert figures["create to bound of a shared pod, p99"].measured == pytest.approx(200)


def test_the_programs_that_take_most_are_named_and_all_are_counted() -> None:
    cpu = {"etcd": 1.0, "kube-apiserver": 4.0, "kubelet": 0.1, "kube-scheduler": 2.0, "extender": 0.5}
    figures = throughput.engine_figures(EXTENDER, Turns([taken(1, etcd=1)], [taken(1, **cpu)]), nodes=100)
    (shared,) = (figure for figure in figures if "a shared pod (" in figure.what)
    assert shared.what.endswith("(kube-apiserver 4.0, kube-scheduler 2.0, etcd 1.0, extender 0.5)")
    assert shared.measured == pytest.approx(7.6)
    assert not any(figure.target for figure in figures), "of other engines nothing is asked here"


def test_an_engine_that_bound_nothing_in_time_is_told_so() -> None:
    figures = by_name(throughput.engine_figures(EXTENDER, Turns([taken(100)], [Taken(0.0)]), nodes=100))
    assert figures["shared over plain"].measured == 0
    assert not any("create to bound" in what for what in figures)


def test_the_rate_of_a_run_that_was_cut_is_that_of_all_the_time_there_was() -> None:
    wait = Percentiles(1, 1, 1)
    assert Throughput(500, 500, 170, wait).within(120) == 170
    assert Throughput(500, 60, 170, wait).within(120) == 0.5


def test_targets_are_those_of_the_plugin() -> None:
    figures = [Figure("a", 1, target=at_most(0)), Figure("b", 2)]
    assert judged(PLUGIN, figures) == figures
    assert judged(EXTENDER, figures) == [Figure("a", 1), Figure("b", 2)]


# Pods that wait


def test_waiting_pods_are_compared_with_two_kinds_of_plain_ones() -> None:
    rates = {"cards": [90.0, 80.0, 100.0], "CPU": [50.0], "plain": [110.0]}
    figures = by_name(waiting.waiting_figures(rates, count=5000))
    over_cpu = figures["beside 5,000: over shared pods beside those that lack CPU"]
    over_plain = figures["beside 5,000: over plain pods beside those"]
    assert (over_cpu.measured, over_cpu.reached) == (1.8, True)
    assert over_plain.measured == pytest.approx(90 / 110)
    assert over_plain.reached is False


def test_where_no_pod_was_bound_beside_others_there_is_nothing_to_compare_with() -> None:
    rates = {"cards": [90.0], "CPU": [0.0], "plain": [100.0]}
    figures = by_name(waiting.waiting_figures(rates, count=10))
    assert "beside 10: over shared pods beside those that lack CPU" not in figures
    assert figures["beside 10: over plain pods beside those"].reached


def metrics(refused: int, **queued: int) -> str:
    lines = [f'scheduler_schedule_attempts_total{{result="unschedulable"}} {refused}']
    lines += [f'scheduler_queue_incoming_pods_total{{event="{event}"}} {queued[event]}' for event in queued]
    return "\n".join([*lines, 'scheduler_schedule_attempts_total{result="scheduled"} 99'])


def test_an_attempt_in_vain_is_told_with_what_queued_the_pod() -> None:
    found = waiting.in_vain("attempts", metrics(5, PodAdd=9), metrics(8, PodAdd=10, AssignedPodDelete=1200))
    assert found.what == "attempts (queued by AssignedPodDelete 1,200, PodAdd 1)"
    assert (found.measured, found.reached) == (3, False)


def test_no_attempt_in_vain_is_what_is_asked_for() -> None:
    found = waiting.in_vain("attempts", metrics(5), metrics(5, PodAdd=300))
    assert (found.what, found.measured, found.reached) == ("attempts", 0, True)


def test_a_waiting_pod_fits_every_empty_card_and_no_card_that_has_a_pod() -> None:
    (container,) = waiting._fit_no_card("gpushare-scheduler")("a")["spec"]["containers"]
    units = int(container["resources"]["limits"][GPUSHARE.memory_resource])
    assert max(LAYOUT.most_free(index) for index in range(20)) < units <= LAYOUT.card_units


def test_one_pod_less_makes_room_for_a_pod_that_waits_for_it() -> None:
    free = {LAYOUT.most_free(index) for index in range(20)}
    assert max(free) < waiting.ONE_CARD_UNITS <= max(free) + UNITS


# Preemption


def freed_by(card: int) -> tuple[int, int, int] | None:
    """Returns what it costs to free a card: the highest priority, how many pods, the sum of priorities."""
    priorities = [PRIORITIES.get(pod.priority, 0) for pod in SHARED.tenants if pod.card == card]
    if max(priorities) >= PRIORITIES[preemption.PREEMPTOR]:
        return None
    return (max(priorities), len(priorities), sum(priorities))


def test_one_card_is_freed_at_the_least_cost_and_that_is_no_tie() -> None:
    costs = {card: cost for card in range(8) if (cost := freed_by(card))}
    victim = SHARED.tenants[SHARED.victim]
    best = min(costs.values())
    assert [card for card, cost in costs.items() if cost == best] == [victim.card]
    assert [pod for pod in SHARED.tenants if pod.card == victim.card] == [victim]
    assert len(costs) == 4, "others could go as well"


@pytest.mark.parametrize("kind", [SHARED, PLAIN])
def test_a_node_is_full_before_anybody_is_preempted(kind: preemption.Kind) -> None:
    places = preemption.places_of(kind, 7)
    if kind is SHARED:
        assert {
            card: sum(pod.units for pod in places if pod.card == card) for card in range(8)
        } == dict.fromkeys(range(8), Cards().card_units)
    bodies = [preemption.tenant_body(place, kind.tenants[place.place]) for place in places]
    cpus = [body["spec"]["containers"][0]["resources"]["requests"]["cpu"] for body in bodies]
    assert kind is SHARED or cpus == [str(preemption.CPUS_A_CARD)] * 8
    assert {body["spec"]["schedulerName"] for body in bodies} == {"bench-nobody"}


def test_the_preemptor_may_go_to_its_node_alone() -> None:
    shared = preemption.preemptor_of(SHARED, 7, scheduler="gpushare-scheduler")
    plain = preemption.preemptor_of(PLAIN, 8, scheduler="default-scheduler")
    assert shared["spec"]["nodeSelector"] == {"kubernetes.io/hostname": node_name(7)}
    assert shared["spec"]["containers"][0]["resources"]["limits"][GPUSHARE.memory_resource] == "16"
    assert plain["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "24"
    assert GPUSHARE.memory_resource not in plain["spec"]["containers"][0]["resources"]["limits"]
    assert {pod["spec"]["priorityClassName"] for pod in (shared, plain)} == {"bench-preemptor"}


def test_pods_of_the_lowest_priority_name_no_class() -> None:
    pod = pending_pod("a")
    assert preemption.with_priority(pod, preemption.LOW) == pod
    assert preemption.tenant_body(PlacedPod(1, 0, 16, 0), Tenant(0, 16, "bench-high"))["spec"][
        "priorityClassName"
    ] == "bench-high"  # fmt: skip


def test_a_preemption_is_right_with_that_one_victim_only() -> None:
    right = Preempted(0.2, frozenset({SHARED.victim}), 0.1, 0.15)
    wrong = Preempted(0.4, frozenset({1, 2}), 0.3, 0.35)
    plain = [Preempted(0.25, frozenset({1}), 0.1)] * 2
    good = by_name(preemption.preemption_figures(plain, [right, right]))
    assert all(figure.reached in (None, True) for figure in good.values())
    bad = by_name(preemption.preemption_figures(plain, [right, wrong]))
    assert bad["victims of 2 preemptions of a card"].measured == 3
    assert bad["of 2 preemptions with the fewest and least important victims"].measured == 1
    assert bad["of 2 preemptions with the fewest and least important victims"].target == at_least(2)


def test_what_the_row_reports_in_the_plugins_place_is_not_the_schedulers() -> None:
    """Of 300 ms the row has 120; of a plain pod's it has none."""
    shared = Preempted(0.30, frozenset({SHARED.victim}), gone=0.08, released=0.20)
    plain = Preempted(0.15, frozenset({1}), gone=0.09)
    figures = by_name(preemption.preemption_figures([plain], [shared]))
    expected = {
        "create of the preemptor to the end of the victim, a card": 80,
        "the row's own report that the card is free": 120,
        "the report to bound": 100,
        "create to bound of the preemptor, a card, but for the report": 180,
        "create of the preemptor to the end of the victim, CPU": 90,
        "create to bound of the preemptor, CPU": 150,
        "shared over plain, but for the report": 1.2,
        "shared over plain, with the report": 2.0,
    }
    assert {what: figures[what].measured for what in expected} == pytest.approx(expected)
    assert [what for what in expected if figures[what].target] == ["shared over plain, but for the report"]


def test_a_binding_carries_the_card_of_a_pod_that_has_units() -> None:
    place = PlacedPod(node=3, card=2, units=8, place=5)
    found = binding(place, "uid-1")
    assert found["target"]["name"] == node_name(3)
    assert found["metadata"]["namespace"] == NAMESPACE
    allocation = decode_allocation(found["metadata"]["annotations"]["gpushare.io/allocation"], uid="uid-1")
    assert allocation.held() == {card_uuid(3, 2): 8}
    assert "annotations" not in binding(PlacedPod(node=3, card=0, units=0, place=0), "uid-2")["metadata"]


def test_a_node_that_is_added_has_the_pods_of_its_row_and_no_others() -> None:
    assert Cards().pods(5) == []
    place = PlacedPod(5, 0, 4, 0)
    assert Cards(placed=(place,)).pods(5) == [place]
    assert Cards(placed=(place,)).pods(6) == []


# Resources, bursts


def test_memory_is_compared_by_medians_in_two_ways() -> None:
    stock = [Memory(300, 100), Memory(320, 110), Memory(900, 105)]
    ours = [Memory(380, 120), Memory(390, 130), Memory(10, 125)]
    figures = by_name(resources.memory_figures(stock, ours, nodes=5000))
    assert figures["more with the plugin: resident at most"].measured == 60
    assert figures["more with the plugin: resident at most"].reached
    assert figures["more with the plugin: heap in use"].measured == 20


def halves(*cards: str) -> list[Json]:
    places = {"GPU-a": 0, "GPU-b": 1}
    found = []
    for number, card in enumerate(cards):
        metadata = binding(PlacedPod(1, places[card], 8, number), f"uid-{number}")["metadata"]
        found.append({"metadata": metadata})
    return found


def test_a_burst_counts_cards_with_two_halves() -> None:
    assert exactness.burst_of(4, halves("GPU-a", "GPU-b", "GPU-a", "GPU-b"), refused=0) == Burst(4, 2, 0, 0)
    assert exactness.burst_of(3, halves("GPU-a", "GPU-a", "GPU-a"), refused=1) == Burst(3, 0, 1, 1)


def test_every_burst_has_to_be_exact() -> None:
    exact, short = Burst(16, 8, 0, 0), Burst(15, 7, 0, 1)
    assert all(figure.reached for figure in exactness.burst_figures([exact, exact]))
    assert [figure.measured for figure in exactness.burst_figures([exact, short])] == [1, 0, 1]


def test_nothing_is_compared_with_plain_pods_that_nobody_placed() -> None:
    with pytest.raises(NotMeasuredError, match="nothing to compare with"):
        waiting.waiting_figures({"cards": [1.0], "CPU": [1.0], "plain": [0.0]}, count=1)
