"""A node that offers its units by the names of a dialect, and what pods and tools of that system find."""

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES, status
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.kube.paths import pod_path
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid

CARDS = [card_uuid(NODE, index) for index in range(2)]
DROP_IN = ["aliyun.com", "volcano.sh", "enflame.com", "tuya.com"]


def memory(dialect: str) -> str:
    return DIALECTS[dialect].memory_resource


def asking(dialect: str, name: str, units: int, card: int | None = None) -> Json:
    """Promised ``card`` by our extender, or by nobody."""
    text = annotation({"main": {CARDS[card]: units}}) if card is not None else None
    return pod_json(name, container(units=units, resource=memory(dialect)), annotation=text)


def annotated(pod: Json, **annotations: str) -> Json:
    pod["metadata"].setdefault("annotations", {}).update(annotations)
    return pod


async def serve(node: Node, dialect: str) -> None:
    node.share(dialect=dialect)
    await node.kubelet.until("the units", lambda it: (it.resource, len(it.devices)) == (memory(dialect), 32))
    await node.until("the record", lambda: node.share_node.status.dialect == dialect)
    await node.until_registered()


def annotations_of(node: Node, name: str) -> dict[str, str]:
    found: dict[str, str] = node.api.pod(name)["metadata"].get("annotations") or {}
    return found


@pytest.mark.parametrize("dialect", DROP_IN)
async def test_a_pod_gets_what_it_asks_for_by_the_dialects_name(node: Node, dialect: str) -> None:
    await serve(node, dialect)
    admitted = await node.run_pod(asking(dialect, "a", 4, card=1))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[1]: 4}})


async def test_aliyuns_variables_and_annotations(node: Node) -> None:
    await serve(node, "aliyun.com")
    bound = {
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_POD": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "16",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1700000000000000000",
    }
    admitted = await node.run_pod(annotated(asking("aliyun.com", "a", 4, card=1), **bound))
    variables = admitted.variables["main"]
    assert variables["NVIDIA_VISIBLE_DEVICES"] == CARDS[1]
    assert {key: value for key, value in variables.items() if key.startswith("ALIYUN_COM_GPU_MEM_")} == {
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_POD": "4",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "16",
    }
    await node.until(
        "the word that it has them",
        lambda: annotations_of(node, "a")["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true",
    )
    assert annotations_of(node, "a")["ALIYUN_COM_GPU_MEM_ASSUME_TIME"] > "1700000000000000000"


async def test_the_index_is_put_right_when_the_card_turns_out_another(node: Node) -> None:
    await serve(node, "aliyun.com")
    await node.run_pod(asking("aliyun.com", "full", 14, card=1))
    pod = annotated(asking("aliyun.com", "a", 4, card=1), ALIYUN_COM_GPU_MEM_IDX="1")
    admitted = await node.run_pod(pod)
    assert admitted.variables["main"]["ALIYUN_COM_GPU_MEM_IDX"] == "0"
    await node.until("the index", lambda: annotations_of(node, "a")["ALIYUN_COM_GPU_MEM_IDX"] == "0")


async def test_an_admission_waits_for_no_annotation(node: Node) -> None:
    """The API server refuses to write on the first pod; the next one is served meanwhile."""
    await serve(node, "volcano.sh")
    node.api.fail("PATCH", pod_path("default", "a"), *[status(500)] * 3)
    for name in ("a", "b"):
        await node.run_pod(asking("volcano.sh", name, 4))
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "RepairPending"))
    await node.until("b's", lambda: annotations_of(node, "b").get("volcano.sh/gpu-assigned") == "true")
    await node.until(
        "a's, at last", lambda: annotations_of(node, "a").get("volcano.sh/gpu-assigned") == "true"
    )


async def test_a_change_of_dialect_waits_for_the_pods_that_hold_units(node: Node) -> None:
    """By other names the kubelet would give the same units again."""
    await node.run_pod(asking("gpushare.io", "a", 4, card=0))
    node.share(dialect="aliyun.com")
    blocked = ("True", "PodsHoldUnits")
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == blocked)
    message = (
        "dialect aliyun.com is applied when this pod is gone, which holds units by the names of gpushare.io:"
        " default/a"
    )
    assert message in node.message("UnitChangeBlocked")
    assert (node.kubelet.resource, len(node.kubelet.devices)) == (GPUSHARE.memory_resource, 32)
    await node.restart_plugin()
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == blocked)
    assert node.share_node.status.dialect == "gpushare.io"
    await node.run_pod(asking("gpushare.io", "b", 12, card=0))
    node.end_pod("a")
    node.end_pod("b")
    await node.kubelet.until("other names", lambda it: it.resource == memory("aliyun.com"))
    await node.until("the record", lambda: node.share_node.status.dialect == "aliyun.com")
    await node.until("no block", lambda: node.condition("UnitChangeBlocked")[0] == "False")


async def test_it_waits_also_when_the_policy_was_deleted_and_applied_anew(node: Node) -> None:
    """Nothing but the kubelet's books tells by which names units are held."""
    await serve(node, "aliyun.com")
    await node.run_pod(asking("aliyun.com", "a", 4, card=0))
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[0]: 4}})
    node.api.delete(SHARE_NODES, NODE)
    await node.kubelet.until("an empty list", lambda it: it.devices == {})
    await node.stop_plugin()
    node.share(dialect="gpushare.io")
    await node.start_plugin()
    await node.kubelet.until(
        "the names in use", lambda it: (it.resource, len(it.devices)) == (memory("aliyun.com"), 32)
    )
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[0]: 4}})
    node.end_pod("a")
    await node.kubelet.until("our names", lambda it: it.resource == GPUSHARE.memory_resource)


async def test_names_that_were_withdrawn_are_left_to_who_registers_them_next(node: Node) -> None:
    """The plugin of the system that comes back: nothing of ours contests it."""
    await serve(node, "aliyun.com")
    withdrawn = node.kubelet.plugin
    assert withdrawn
    await serve(node, "volcano.sh")
    before = node.kubelet.registrations
    await withdrawn.channel.close()  # as the kubelet does when another plugin registers the resource
    await node.run_pod(asking("volcano.sh", "a", 4))
    await node.until("the status", lambda: node.on_cards().keys() == {"a"})
    with pytest.raises(AssertionError, match="another registration"):
        await node.kubelet.until("another registration", lambda it: it.registrations > before, within=2)


async def test_the_annotations_of_volcanos_scheduler_are_followed(node: Node) -> None:
    await serve(node, "volcano.sh")
    at = {"volcano.sh/predicate-time": "1700000000000000000"}
    first = annotated(asking("volcano.sh", "a", 4), **{"volcano.sh/gpu-index": "1", **at})
    admitted = await node.run_pod(first)
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    await node.until("our annotation", lambda: node.allocation("a") is not None)
    assert annotations_of(node, "a")["volcano.sh/gpu-assigned"] == "true"
    assert annotations_of(node, "a")["volcano.sh/predicate-time"] == "1700000000000000000"


async def test_a_pod_that_the_replaced_extender_bound_gets_the_card_that_it_named(node: Node) -> None:
    await serve(node, "aliyun.com")
    bound = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "4"}
    admitted = await node.run_pod(
        annotated(asking("aliyun.com", "a", 4), ALIYUN_COM_GPU_MEM_ASSIGNED="false", **bound)
    )
    assert admitted.variables["main"]["ALIYUN_COM_GPU_MEM_IDX"] == "1"


async def test_what_another_scheduler_promised_is_kept_for_its_pod(node: Node) -> None:
    await serve(node, "volcano.sh")
    promised = annotated(asking("volcano.sh", "promised", 16), **{"volcano.sh/gpu-index": "0"})
    node.api.put(PODS, promised)
    await node.until("the promise", lambda: node.knows("promised"))
    other = await node.run_pod(asking("volcano.sh", "other", 4))
    assert other.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    assert (await node.kubelet.admit(promised)).variables["main"]["GPUSHARE_CARD"] == CARDS[0]


async def test_who_annotates_a_pod_gets_no_card_that_others_were_promised(node: Node) -> None:
    """Its author bound it as well, so nobody has overwritten that."""
    await serve(node, "volcano.sh")
    promised = asking("volcano.sh", "promised", 16, card=0)
    node.api.put(PODS, promised)
    await node.until("the promise", lambda: node.knows("promised"))
    forged = await node.run_pod(annotated(asking("volcano.sh", "a", 4), **{"volcano.sh/gpu-index": "0"}))
    assert forged.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    assert (await node.kubelet.admit(promised)).variables["main"]["GPUSHARE_CARD"] == CARDS[0]


@pytest.mark.parametrize(
    "index",
    [
        pytest.param("7", id="no such card"),
        pytest.param("-1", id="no index"),
        pytest.param("0", id="a card that is full"),
    ],
)
async def test_a_hint_that_cannot_be_followed_leads_to_a_card_with_room(node: Node, index: str) -> None:
    await serve(node, "volcano.sh")
    await node.run_pod(asking("volcano.sh", "full", 16, card=0))
    pod = annotated(asking("volcano.sh", "a", 4), **{"volcano.sh/gpu-index": index})
    admitted = await node.run_pod(pod)
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    with pytest.raises(AdmissionError):
        await node.run_pod(annotated(asking("volcano.sh", "b", 16), **{"volcano.sh/gpu-index": "0"}))


async def test_what_units_mean_survives_the_plugin_and_its_record(node: Node) -> None:
    """The kubelet's checkpoint names the card of what the dialect's codec answered."""
    await serve(node, "aliyun.com")
    await node.run_pod(asking("aliyun.com", "a", 4, card=1))
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[1]: 4}})
    await node.stop_plugin()
    node.api.objects[SHARE_NODES]["", NODE]["status"] = {}
    pod = node.api.pod("a")
    pod["metadata"]["annotations"] = {}
    node.api.put(PODS, pod)
    devices = {
        "source": "Simulated",
        "simulated": [{"count": 1, "memory": memory} for memory in ("28Gi", "16Gi")],
    }
    node.share(dialect="aliyun.com", devices=devices)
    await node.start_plugin()
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[1]: 4}})
    held = node.kubelet.pods[name_of("a")].held["main"]
    assert set(held) <= node.kubelet.devices.keys()
