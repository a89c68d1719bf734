"""A node on which another system's plugin served before: its pods hold device IDs that are not ours.

The kubelet keeps these under a resource that we offer from now on.
"""

from collections import Counter
from dataclasses import dataclass

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, ids, name_of, pod_json

from gpushare_core.dialects.table import DIALECTS
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid

CARDS = [card_uuid(NODE, index) for index in range(2)]


@dataclass(frozen=True, slots=True)
class Replaced:
    """A system's plugin, as far as the kubelet keeps what it did."""

    dialect: str
    id_format: str
    """With the card of a device and its number: the kubelet took any of them."""

    @property
    def resource(self) -> str:
        return DIALECTS[self.dialect].memory_resource

    def ids(self, *numbers: int, card: int = 0) -> list[str]:
        return [self.id_format.format(uuid=CARDS[card], index=card, number=number) for number in numbers]

    def answer(self, card: int, units: int) -> dict[str, str]:
        return {
            "aliyun.com": {
                "NVIDIA_VISIBLE_DEVICES": str(card),
                "ALIYUN_COM_GPU_MEM_IDX": str(card),
                "ALIYUN_COM_GPU_MEM_POD": str(units),
                "ALIYUN_COM_GPU_MEM_CONTAINER": str(units),
                "ALIYUN_COM_GPU_MEM_DEV": "16",
            },
            "volcano.sh": {
                "NVIDIA_VISIBLE_DEVICES": str(card),
                "VOLCANO_GPU_ALLOCATED": str(units * 1024),
                "VOLCANO_GPU_MEMORY_TOTAL": "16384",
            },
        }[self.dialect]

    def annotations(self, card: int, units: int) -> dict[str, str]:
        return {
            "aliyun.com": {
                "ALIYUN_COM_GPU_MEM_IDX": str(card),
                "ALIYUN_COM_GPU_MEM_POD": str(units),
                "ALIYUN_COM_GPU_MEM_DEV": "16",
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1700000000000000000",
            },
            "volcano.sh": {
                "volcano.sh/gpu-index": str(card),
                "volcano.sh/predicate-time": "1700000000000000000",
                "volcano.sh/gpu-assigned": "true",
            },
        }[self.dialect]

    def pod(self, name: str, units: int) -> Json:
        pod = pod_json(name, container(units=units, resource=self.resource))
        pod["metadata"]["annotations"] = {}
        return pod

    def run(self, node: Node, name: str, card: int, ids: list[str]) -> None:
        """A pod of the replaced system, which has run for long."""
        pod = self.pod(name, len(ids))
        pod["metadata"]["annotations"] = self.annotations(card, len(ids))
        pod["status"] = {"phase": "Running", "startTime": "2026-11-01T10:00:00Z"}
        node.api.put(PODS, pod)
        node.kubelet.served_by_another_plugin(pod, {"main": ids}, self.answer(card, len(ids)), self.resource)


ALIYUN = Replaced("aliyun.com", "{uuid}-_-{number}")
VOLCANO = Replaced("volcano.sh", "{index}-{number}")
SYSTEMS = [pytest.param(ALIYUN, id="aliyun"), pytest.param(VOLCANO, id="volcano")]


async def switched(node: Node, system: Replaced) -> None:
    """To us, with the dialect of the system that served before."""
    node.share(dialect=system.dialect)
    await node.start_plugin()
    await node.until_registered()
    await node.kubelet.until("the resource", lambda it: it.resource == system.resource)


def foreign(node: Node, system: Replaced) -> set[str]:
    marks = {"aliyun.com": "-_-", "volcano.sh": "-"}
    return {device for device in node.kubelet.devices if marks[system.dialect] in device and len(device) > 2}


@pytest.mark.parametrize("system", SYSTEMS)
async def test_what_runs_counts_from_the_first_second(idle_node: Node, system: Replaced) -> None:
    node = idle_node
    held = system.ids(0, 1, 2, 3, card=1)  # not those of its card: the kubelet took any
    system.run(node, "old", 0, held)
    await switched(node, system)
    assert len(node.kubelet.devices) == 32  # the kubelet's sums stay what they are
    assert set(held) <= node.kubelet.devices.keys()
    assert set(node.kubelet.devices.values()) == {"Healthy"}
    await node.until("the status", lambda: node.on_cards() == {"old": {CARDS[0]: 4}})
    assert node.share_node.status.dialect == system.dialect
    assert node.condition("LedgerInSync") == ("True", "InSync")


@pytest.mark.parametrize("system", SYSTEMS)
async def test_no_card_is_filled_beyond_its_size(idle_node: Node, system: Replaced) -> None:
    node = idle_node
    system.run(node, "old-0", 0, system.ids(*range(12)))
    system.run(node, "old-1", 1, system.ids(*range(12, 14)))
    await switched(node, system)
    for name, units, card in (("a", 4, 0), ("b", 14, 1)):
        admitted = await node.run_pod(system.pod(name, units))
        assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[card]
    with pytest.raises(AdmissionError, match="Requested: 1, Available: 0"):
        await node.run_pod(system.pod("c", 1))
    await node.until("the status", lambda: node.share_node.status.summary == "16/16 16/16")


async def test_a_pod_that_fits_no_card_beside_them_is_refused(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old-0", 0, ALIYUN.ids(*range(10)))
    ALIYUN.run(node, "old-1", 1, ALIYUN.ids(*range(10, 16), *range(6), card=1)[:10])
    await switched(node, ALIYUN)
    with pytest.raises(AdmissionError, match="asked 8, largest free 6"):
        await node.run_pod(ALIYUN.pod("a", 8))


@pytest.mark.parametrize("system", SYSTEMS)
async def test_their_units_come_back_as_ours_when_they_end(idle_node: Node, system: Replaced) -> None:
    node = idle_node
    system.run(node, "old", 0, system.ids(*range(12)))
    await switched(node, system)
    await node.run_pod(system.pod("a", 4))
    node.end_pod("old")
    await node.kubelet.until("our units alone", lambda _: not foreign(node, system))
    assert len(node.kubelet.devices) == 32
    for name in ("b", "c"):
        await node.run_pod(system.pod(name, 12 if name == "b" else 16))
    await node.until("the status", lambda: node.share_node.status.summary == "16/16 16/16")


async def test_ours_is_annotated_beside_theirs_and_theirs_is_left(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 1, ALIYUN.ids(0, 1))
    await switched(node, ALIYUN)
    await node.until("our annotation", lambda: node.allocation("old") is not None)
    annotations = node.api.pod("old")["metadata"]["annotations"]
    assert {key: annotations[key] for key in ALIYUN.annotations(1, 2)} == ALIYUN.annotations(1, 2)
    held = node.allocation("old")
    assert held
    assert held.containers == {"main": {CARDS[1]: 2}}


async def test_without_checkpoint_the_annotations_tell_the_card(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 1, ALIYUN.ids(0, 1))
    node.kubelet.writes_checkpoint = False
    node.kubelet.checkpoint.unlink()
    await switched(node, ALIYUN)
    await node.until("the status", lambda: node.on_cards() == {"old": {CARDS[1]: 2}})


async def test_where_nobody_tells_the_card_they_count_on_each(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 1, ALIYUN.ids(*range(10)))
    pod = node.api.pod("old")
    pod["metadata"]["annotations"] = {}
    node.api.put(PODS, pod)
    node.kubelet.writes_checkpoint = False
    node.kubelet.checkpoint.unlink()
    await switched(node, ALIYUN)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "ForeignUnits"))
    assert "default/old" in node.message("LedgerInSync")
    with pytest.raises(AdmissionError, match="asked 8, largest free 6"):
        await node.run_pod(ALIYUN.pod("a", 8))


async def test_what_somebody_annotates_later_frees_no_card(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 1, ALIYUN.ids(*range(10)))
    await switched(node, ALIYUN)
    pod = node.api.pod("old")
    pod["metadata"]["annotations"] = {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "0"}
    node.api.put(PODS, pod)
    await node.run_pod(ALIYUN.pod("a", 16))
    await node.until("the status", lambda: node.on_cards() == {"old": {CARDS[1]: 10}, "a": {CARDS[0]: 16}})


@pytest.mark.parametrize(
    ("told", "units"),
    [
        pytest.param({"ALIYUN_COM_GPU_MEM_DEV": "16384"}, 1, id="theirs are MiB"),
        pytest.param({"ALIYUN_COM_GPU_MEM_DEV": "16"}, 4, id="the same"),
    ],
)
async def test_units_of_another_size_are_converted_and_said(
    idle_node: Node, told: dict[str, str], units: int
) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 0, ALIYUN.ids(*range(4)))
    node.kubelet.pods[name_of("old")].variables["main"].update(told)
    await switched(node, ALIYUN)
    await node.until("the status", lambda: node.on_cards() == {"old": {CARDS[0]: units}})
    expected = ("True", "InSync") if units == 4 else ("False", "ForeignUnits")
    await node.until("the word", lambda: node.condition("LedgerInSync") == expected)


async def test_gigabytes_on_a_node_of_smaller_units_count_as_all_that_they_are(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 0, ALIYUN.ids(*range(4)))
    node.share("256Mi", dialect="aliyun.com")
    await node.start_plugin()
    await node.until("the status", lambda: node.on_cards() == {"old": {CARDS[0]: 16}})
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "ForeignUnits"))
    assert "4 units of 1024Mi each" in node.message("LedgerInSync")


@pytest.mark.parametrize("system", SYSTEMS)
async def test_nothing_of_it_changes_with_a_restart_of_our_plugin(idle_node: Node, system: Replaced) -> None:
    node = idle_node
    system.run(node, "old", 0, system.ids(*range(12)))
    await switched(node, system)
    await node.run_pod(system.pod("a", 4))
    await node.until("the status", lambda: node.share_node.status.summary == "16/16 0/16")
    before = Counter(node.kubelet.devices)
    await node.restart_plugin()
    await node.until_registered()
    await node.kubelet.until("the same devices", lambda it: Counter(it.devices) == before)
    assert node.on_cards() == {"old": {CARDS[0]: 12}, "a": {CARDS[0]: 4}}


async def test_pods_of_another_plugin_are_none_of_our_affair_in_another_dialect(idle_node: Node) -> None:
    """Who shares by our names has no annotation, no sum and no condition for it."""
    node = idle_node
    ALIYUN.run(node, "old", 0, ALIYUN.ids(*range(12)))
    node.share()
    await node.start_plugin()
    await node.until_registered()
    await node.run_pod(pod_json("a", container(units=16)))
    await node.until("the status", lambda: node.share_node.status.summary == "16/16 0/16")
    assert node.allocation("old") is None
    assert node.condition("LedgerInSync") == ("True", "InSync")


async def test_in_mode_mixed_their_card_serves_memory_alone(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 0, ALIYUN.ids(*range(4)))
    node.share(dialect="aliyun.com", mode="Mixed", slicesPerCard=2)
    await node.start_plugin()
    await node.until_registered()
    expected = {ALIYUN.resource: 32, "gpushare.io/slice": 2, "gpushare.io/card": 1}
    await node.kubelet.until(
        "lists by the locks",
        lambda it: {name: len(devices) for name, devices in it.offered.items()} == expected,
    )
    await node.until("the status", lambda: node.on_cards() == {"old": {CARDS[0]: 4}})
    admitted = await node.run_pod(pod_json("s", container(units=1, resource="gpushare.io/slice")))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    with pytest.raises(AdmissionError):
        await node.run_pod(ALIYUN.pod("m", 13))
    await node.run_pod(ALIYUN.pod("n", 12))
    await node.until("the summary", lambda: node.share_node.status.summary == "memory:16/16 slices:1/2")


async def test_a_kubelet_that_has_an_older_list_fills_no_card_beyond_its_size(idle_node: Node) -> None:
    """It calls all our units available, and may not even ask which to take."""
    node = idle_node
    ALIYUN.run(node, "old-0", 0, ALIYUN.ids(*range(10)))
    ALIYUN.run(node, "old-1", 1, ALIYUN.ids(*range(10), card=1))
    await switched(node, ALIYUN)
    node.kubelet.devices = dict.fromkeys(ids(*range(32)), "Healthy")
    with pytest.raises(AdmissionError, match="asked 8, largest free 6"):
        await node.run_pod(ALIYUN.pod("a", 8))
    with pytest.raises(AdmissionError, match=r"17 of 16 units of card 1 .* gave out 10 of them"):
        await node.kubelet.allocate(ALIYUN.resource, ids(*range(16, 23)))
    await node.kubelet.allocate(ALIYUN.resource, ids(*range(16, 22)))


async def test_they_are_in_the_first_list_of_a_policy_that_comes_later(
    idle_node: Node,
) -> None:
    """Only the policy says that they are this node's affair."""
    node = idle_node
    held = ALIYUN.ids(*range(10))
    ALIYUN.run(node, "old", 0, held)
    node.api.delete(SHARE_NODES, NODE)
    await node.start_plugin()
    await node.until(
        "a look at the books", lambda: node.agent is not None and node.agent.state.assigned_known
    )
    node.share(dialect="aliyun.com")
    await node.kubelet.until("the first list", lambda it: bool(it.devices))
    assert len(node.kubelet.lists) == 1
    assert set(held) <= node.kubelet.devices.keys()


async def test_they_are_in_the_list_also_while_pod_resources_do_not_answer(idle_node: Node) -> None:
    """The checkpoint alone tells of them."""
    node = idle_node
    held = ALIYUN.ids(*range(10))
    ALIYUN.run(node, "old", 0, held)
    node.kubelet.deaf = True
    node.share(dialect="aliyun.com")
    await node.start_plugin()
    await node.kubelet.until("a list", lambda it: bool(it.devices))
    assert set(held) <= node.kubelet.devices.keys()
    assert len(node.kubelet.devices) == 32


async def test_pods_of_another_plugin_block_no_change(idle_node: Node) -> None:
    node = idle_node
    ALIYUN.run(node, "old", 0, ALIYUN.ids(*range(12)))
    node.share()
    await node.start_plugin()
    await node.until_registered()
    node.share("512Mi")
    await node.kubelet.until("smaller units", lambda it: len(it.devices) == 64)
    assert node.condition("UnitChangeBlocked") == ("False", "NotBlocked")
