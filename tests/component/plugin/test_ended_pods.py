"""Ended pods that a kubelet lists without units, as kubelets before 1.34 do with all of them."""

import asyncio
from dataclasses import dataclass

import pytest
from tests.component.plugin.test_kubelet_restart import all_pods
from tests.component.plugin.test_lost_assignments import FIRST, RUNNING, forgetful_restart, one_card
from tests.fakes.api_server import PODS, status
from tests.fakes.kubelet import AdmissionError, Admitted
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, name_of, pod_json

from gpushare_core.kube.paths import pod_path
from gpushare_core.text.json_object import Json
from gpushare_plugin.cluster import pod_watch
from gpushare_plugin.cluster.pod_watch import PodWatch
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, PodName
from gpushare_plugin.state import PluginState

REFUSED = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
HELD = {"web": {FIRST: 12}}
READINGS = 3.0
"""Seconds in which the kubelet's books are read several times."""


@pytest.fixture
def killed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet that needs no time: what still holds then, holds for another reason."""
    monkeypatch.setattr(pod_watch, "KILLED_AFTER", 0.0)


async def forgotten(node: Node) -> Json:
    """A pod of 12 units that runs, and of whose units the kubelet knows nothing any more."""
    await one_card(node, "Memory")
    pod = pod_json("web", container(units=12))
    await node.run_pod(pod | {"status": RUNNING})
    await node.until("its status", lambda: node.on_cards() == HELD)
    await forgetful_restart(node, "web")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    return pod


async def test_they_hold_their_units_while_containers_may_run(node: Node) -> None:
    pod = await forgotten(node)
    begun = asyncio.get_running_loop().time()
    node.api.put(PODS, pod | {"status": REFUSED})
    await node.until("the end of it", lambda: node.on_cards() == {})
    assert asyncio.get_running_loop().time() - begun > 8


@pytest.mark.usefixtures("killed_at_once")
async def test_another_pod_of_the_name_that_ended_frees_nothing(node: Node) -> None:
    await forgotten(node)
    node.api.put(PODS, pod_json("web", container(units=12), uid="uid-of-another") | {"status": REFUSED})
    await asyncio.sleep(READINGS)
    assert node.on_cards() == HELD


@pytest.mark.usefixtures("killed_at_once")
async def test_without_a_kubelet_nobody_kills_their_containers(node: Node) -> None:
    pod = await forgotten(node)
    await node.kubelet.stop()
    node.api.put(PODS, pod | {"status": REFUSED})
    await asyncio.sleep(READINGS)
    assert node.on_cards() == HELD
    await node.kubelet.start()
    await node.until("the end of it", lambda: node.on_cards() == {})


async def beside_an_ended_job(node: Node) -> None:
    """A pod whose units the kubelet has lost, beside an ended pod that it lists without units."""
    done = pod_json("job", container())
    await one_card(node, "Memory")
    node.kubelet.pods[name_of("job")] = Admitted(done["spec"], uid="uid-job")
    node.api.put(PODS, done | {"status": {"phase": "Succeeded"}})
    await node.run_pod(pod_json("web", container(units=12)) | {"status": RUNNING})
    await node.until("its status", lambda: node.on_cards() == HELD)
    await forgetful_restart(node, "web")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    # The first call reads what the kubelet lists, the reading after it notes that.
    await node.run_pod(pod_json("tiny", container(units=1)))
    node.end_pod("tiny")
    assert node.agent
    state = node.agent.state
    await node.until("the job", lambda: name_of("job") in state.listed_ended)


async def test_a_container_that_restarts_beside_one_gets_its_card_again(node: Node) -> None:
    await beside_an_ended_job(node)
    variables = await node.kubelet.restart_container(name_of("web"), "main", 12)
    assert variables["GPUSHARE_CARD"] == FIRST


async def must_not_get_the_units_of_web(node: Node, uid: str) -> None:
    with pytest.raises(AdmissionError, match="asked 12, largest free"):
        await node.kubelet.admit(pod_json("job", container(units=12), uid=uid))


async def test_a_static_pod_that_takes_the_name_of_a_deleted_one_is_another(node: Node) -> None:
    await beside_an_ended_job(node)
    node.api.delete(PODS, "job", "default")
    del node.kubelet.pods[name_of("job")]
    await must_not_get_the_units_of_web(node, "hash-of-its-file")


async def test_nothing_is_known_of_a_pod_that_could_not_be_read(node: Node) -> None:
    """One of a StatefulSet, whose name is used again."""
    await beside_an_ended_job(node)
    node.api.fail("GET", pod_path("default", "job"), *[status(500)] * 60)
    await must_not_get_the_units_of_web(node, "uid-job-2")


async def test_a_static_pod_that_takes_the_name_of_an_ended_one_is_another(node: Node) -> None:
    """It has no mirror. A kubelet since 1.34 does not list the ended one."""
    await beside_an_ended_job(node)
    del node.kubelet.pods[name_of("job")]
    assert node.agent
    state = node.agent.state
    await node.until("the list without it", lambda: name_of("job") not in state.listed_ended)
    await must_not_get_the_units_of_web(node, "hash-of-its-file")


def ended_pod(name: PodName) -> Json:
    metadata = {"name": name.name, "namespace": name.namespace, "uid": f"uid-{name.name}"}
    return {"metadata": metadata, "spec": {"nodeName": "gpu-1"}, "status": REFUSED}


@dataclass
class SlowApi:
    """Says ``seconds`` after it is asked that a pod has ended."""

    seconds: float
    asked_to_wait: float = 0.0

    async def get(self, path: str) -> Json:
        await asyncio.sleep(self.seconds)
        return ended_pod(PodName("default", path.rpartition("/")[2]))


def refused_pods(number: int) -> PluginState:
    """A kubelet lists them without the units that they had."""
    names = [PodName("default", f"p{index}") for index in range(number)]
    lost = {
        name: PodAllocation(Pod(name=name, uid=f"uid-{name.name}"), {"main": {"c": 1}}, {"c": 1})
        for name in names
    }
    listed = {name: PodAssignment.of_devices(name, {}) for name in names}
    state = PluginState("gpu-1", pod_resources_available=True)
    state.assigned = AssignedDevices(pods=listed, lost=lost)
    return state


def watch_of(state: PluginState, api: SlowApi) -> PodWatch:
    return PodWatch(state, api, ended=lambda: None)  # type: ignore[arg-type]


@pytest.mark.usefixtures("killed_at_once")
async def test_all_that_a_kubelet_refused_are_read_from_a_slow_api_server() -> None:
    state = refused_pods(40)
    await watch_of(state, SlowApi(0.1)).forget_ended(timeout=2.0)
    assert state.assigned.lost == {}


@pytest.mark.usefixtures("killed_at_once")
async def test_an_api_server_that_hangs_is_not_waited_for() -> None:
    state = refused_pods(1)
    async with asyncio.timeout(30):
        await watch_of(state, SlowApi(60)).forget_ended(timeout=0.1)
    assert len(state.assigned.lost) == 1
