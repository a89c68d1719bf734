"""The real API server takes good policies, and refuses bad ones with a message that says what is allowed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.kubernetes_features import STATUS_RATCHETING, is_on
from tests.unit.plugin.test_status_bounds import odd_status

from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("product")]

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "config" / "samples").glob("*.yaml"))
CONTAINERS = {"measurement": {"scope": "Containers"}}
UNMEASURED: tuple[Json, ...] = ({}, {"measurement": {}}, {"measurement": {"scope": "Cards"}})
SIMULATED = {"source": "Simulated", "simulated": [{"count": 8, "memory": "16Gi"}]}


def rule(**extra: Any) -> Json:
    return {"names": ["gpu-1"], "devices": SIMULATED, **extra}


def isolated(devices: Json, **isolation: Any) -> Json:
    return rule(devices=devices, isolation=isolation)


def policy(*rules: Json, name: str = "tried", **extra: Any) -> Json:
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": name},
        "spec": {"nodes": list(rules or (rule(),)), **extra},
    }


def submit(cluster: LocalCluster, body: Json) -> Json:
    """Have the API server judge ``body`` without keeping it; returns what it would have kept."""
    kept = cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(body))
    answer: Json = json.loads(kept)
    return answer


def without(body: Json, key: str) -> Json:
    return {name: value for name, value in body.items() if name != key}


BAD = [
    pytest.param(policy(memoryUnit="1.5Gi"), "such as 1Gi (default), 256Mi", id="half a unit"),
    pytest.param(policy(memoryUnit="0Gi"), "such as 1Gi (default), 256Mi", id="no unit"),
    pytest.param(policy(memoryUnit="1Ki"), "whole number of M, G, Mi or Gi", id="unit in kibibytes"),
    pytest.param(policy(rule(mode="Half")), '"Memory", "Slices", "Exclusive", "Mixed", "Off"', id="mode"),
    pytest.param(policy(rule(mode="Slices")), "mode Slices or Mixed needs slicesPerCard", id="no slices"),
    pytest.param(policy(rule(slicesPerCard=2)), "only has a meaning with mode Slices", id="idle slices"),
    pytest.param(
        policy(rule(mode="Slices", slicesPerCard=65)), "less than or equal to 64", id="too many slices"
    ),
    pytest.param(
        policy(rule(selector={"matchLabels": {"a": "b"}})),
        "either names or a selector",
        id="both",
    ),
    pytest.param(policy(without(rule(), "names")), "either names or a selector", id="neither"),
    pytest.param(policy(rule(names=["gpu-*"])), "give each name in full", id="a pattern for a name"),
    pytest.param(
        policy({"selector": {"matchLabels": {"gpu": "Tesla V100"}}}),
        "such as Tesla-V100",
        id="a value that no label has",
    ),
    pytest.param(policy(rule(names=[])), "names must name at least one node", id="no names"),
    pytest.param(policy(rule(names=["a", "a"])), "Duplicate value", id="twice in one rule"),
    pytest.param(policy(rule(), rule()), "name each node once", id="twice in two rules"),
    pytest.param(
        policy({"selector": {}, "devices": SIMULATED}),
        "would select every node",
        id="everything",
    ),
    pytest.param(
        policy({"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
        '"In", "NotIn", "Exists", "DoesNotExist"',
        id="operator",
    ),
    *(
        pytest.param(
            policy({"selector": {"matchExpressions": [{"key": "a", **expression}]}}), said, id=f"{expression}"
        )
        for expression, said in (
            ({"operator": "In"}, "operator In or NotIn needs values"),
            ({"operator": "NotIn", "values": []}, "operator In or NotIn needs values"),
            ({"operator": "Exists", "values": ["b"]}, "operator Exists or DoesNotExist takes no values"),
            ({"operator": "DoesNotExist", "values": ["b"]}, "Exists or DoesNotExist takes no values"),
        )
    ),
    pytest.param(
        policy(
            *({"selector": {"matchLabels": {"a": "b"}}, "mode": mode} for mode in ("Memory", "Exclusive"))
        ),
        "two entries of nodes have the same selector",
        id="selector twice",
    ),
    pytest.param(policy(unitChange="Wait"), '"Drain", "Keep"', id="change of unit"),
    pytest.param(policy(rule(mode=False)), '"Mixed", "Off"', id="Off without quotes, which is false"),
    pytest.param(policy(rule(reservedMemory="some")), "such as 16Gi, 512Mi or 100M", id="reserved memory"),
    pytest.param(
        policy(rule(devices={"source": "Simulated"})), "such as {count: 8, memory: 16Gi}", id="no cards"
    ),
    pytest.param(
        policy(rule(devices={"simulated": [{"count": 1, "memory": "1Gi"}]})),
        "only read with source: Simulated",
        id="cards for NVML",
    ),
    pytest.param(
        policy(rule(devices={"source": "Simulated", "simulated": [{"count": 1}]})),
        "memory: Required value",
        id="card without memory",
    ),
    pytest.param(policy(rule(devices={"source": "Magic"})), '"NVML", "Simulated", "Inventory"', id="source"),
    *(
        pytest.param(
            policy(rule(devices={"source": "Inventory", "inventoryPath": path})),
            "must be a file directly in /etc/gpushare or /var/lib/gpushare",
            id=f"inventory in {path}",
        )
        for path in ("/etc/inventory.yaml", "/etc/gpushare/../shadow", "/etc/gpushare/", "/etc/gpushare/a/b")
    ),
    pytest.param(
        policy(rule(devices={"injection": "CDI", "cdiKind": "gpu"})), "a vendor and a class", id="CDI kind"
    ),
    pytest.param(
        policy(rule(), plugin={"runtimeClassName": "No Name"}),
        "the name of a RuntimeClass",
        id="runtime class",
    ),
    pytest.param(policy(dialect="nvidia.com"), '"gpushare.io", "aliyun.com"', id="dialect"),
    pytest.param(policy(placement={"strategy": "Random"}), '"Binpack", "Spread"', id="strategy"),
    pytest.param(policy(scheduler={"backend": "None"}), '"KubeScheduler", "Dedicated"', id="backend"),
    pytest.param(
        policy(scheduler={"backend": "Volcano"}), "backend Volcano needs dialect: volcano.sh", id="Volcano"
    ),
    pytest.param(
        policy(scheduler={"volcano": {"namespace": "batch"}}),
        "volcano is only read with backend: Volcano",
        id="Volcano's names for another backend",
    ),
    pytest.param(policy(scheduler={"engine": "Webhook"}), '"Plugin", "Extender"', id="engine"),
    *(
        pytest.param(
            policy(scheduler={"backend": backend, "engine": "Plugin"}, dialect="volcano.sh"),
            "set backend to Dedicated or KubeScheduler, or leave engine out",
            id=f"engine Plugin with {backend}",
        )
        for backend in ("External", "Volcano")
    ),
    pytest.param(policy(scheduler={"extenderPort": 32766}), "outside the NodePort range", id="NodePort"),
    pytest.param(policy(scheduler={"extenderPort": 29999}), "outside the NodePort range", id="next NodePort"),
    pytest.param(policy(scheduler={"extenderPort": 80}), "greater than or equal to 1024", id="low port"),
    pytest.param(policy(scheduler={"timeoutSeconds": 5}), "greater than or equal to 30", id="no time"),
    pytest.param(policy(plugin={"logLevel": "loud"}), '"debug", "info", "warning", "error"', id="log level"),
    pytest.param(policy(name="a" * 41), "at most 40 characters", id="long name"),
    pytest.param({**policy(), "spec": {}}, "nodes: Required value", id="no nodes"),
    pytest.param({**policy(), "spec": {"nodes": []}}, "at least 1 item", id="empty nodes"),
    *(
        pytest.param(policy(isolated(devices, memory=kind)), said, id=f"isolation {kind} of {source}")
        for kind, source, devices, said in (
            ("Driver", "simulated cards", SIMULATED, "Driver needs devices.source NVML"),
            ("Driver", "an inventory", {"source": "Inventory"}, "use Hook or None for other cards"),
            ("Hook", "simulated cards", SIMULATED, "use None for them"),
            ("MPS", "NVML's cards", {}, '"None", "Hook", "Driver"'),
        )
    ),
    pytest.param(
        policy(isolated({"source": "Inventory"}, onExcess="Evict"), plugin=CONTAINERS),
        "use Report for them",
        id="evictions from cards that are not measured",
    ),
    *(
        pytest.param(
            policy(isolated(SIMULATED, onExcess="Evict"), plugin=plugin),
            "set plugin.measurement.scope to Containers, or onExcess to Report",
            id=f"evictions with {plugin}",
        )
        for plugin in UNMEASURED
    ),
    pytest.param(
        policy(isolated({}, contextMemory="5Gi")), "contextMemory must be 4Gi at most", id="huge context"
    ),
    pytest.param(policy(isolated({}, contextMemory="some")), "such as 16Gi, 512Mi or 100M", id="context"),
    pytest.param(policy(isolated({}, graceSeconds=86401)), "less than or equal to 86400", id="grace"),
    pytest.param(
        policy(*({"names": [f"n{at}-{number}" for number in range(100)]} for at in range(9))),
        "select more by their labels",
        id="900 names",
    ),
]


@pytest.mark.parametrize(("body", "said"), BAD)
def test_a_bad_policy_is_refused_with_what_is_allowed(cluster: LocalCluster, body: Json, said: str) -> None:
    with pytest.raises(LocalClusterError) as refusal:
        submit(cluster, body)
    assert said in str(refusal.value)


GOOD = [
    pytest.param(policy(), id="least"),
    pytest.param(policy(rule(mode="Slices", slicesPerCard=2)), id="slices"),
    pytest.param(policy(rule(mode="Mixed", slicesPerCard=64)), id="mixed"),
    pytest.param(policy(scheduler={"backend": "External"}), id="external"),
    pytest.param(policy(scheduler={"engine": "Plugin"}), id="engine Plugin in the cluster's kube-scheduler"),
    pytest.param(
        policy(scheduler={"backend": "External", "engine": "Extender"}), id="external, engine named"
    ),
    *(
        pytest.param(policy(scheduler={"backend": "Dedicated", "engine": engine}), id=f"dedicated, {engine}")
        for engine in ("Plugin", "Extender")
    ),
    pytest.param(
        policy(
            scheduler={"backend": "Volcano", "volcano": {"configMap": "volcano-config"}}, dialect="volcano.sh"
        ),
        id="Volcano",
    ),
    pytest.param(policy({"names": ["a"], "mode": "Off"}, rule()), id="off"),
    pytest.param(policy({"names": [f"n{number}" for number in range(256)]}), id="256 names in a rule"),
    pytest.param(
        policy(*({"names": [f"n{at}-{number}" for number in range(66)]} for at in range(12))),
        id="792 names in twelve rules",
    ),
    pytest.param(policy(rule(reservedMemory="1.5Gi"), memoryUnit="100M"), id="families mixed"),
    pytest.param(policy(rule(mode="Exclusive", devices={"source": "Inventory"})), id="inventory"),
    pytest.param(
        policy(rule(devices={"source": "Inventory", "inventoryPath": "/var/lib/gpushare/gcu.yaml"})),
        id="inventory elsewhere",
    ),
    pytest.param(
        policy(rule(devices={"injection": "CDI", "cdiKind": "enflame.com/gcu"})), id="CDI of another vendor"
    ),
    pytest.param(policy(rule(), plugin={"runtimeClassName": "nvidia"}), id="runtime class"),
    pytest.param(policy(isolated({}, memory="Driver")), id="isolation by the driver"),
    pytest.param(policy(isolated({"source": "Inventory"}, memory="Hook", contextMemory="4Gi")), id="hook"),
    pytest.param(
        policy(isolated(SIMULATED, onExcess="Evict", graceSeconds=0), plugin=CONTAINERS), id="evictions"
    ),
    pytest.param(
        policy(
            *(
                {
                    "names": [f"n{at}-{number}" for number in range(66)],
                    "isolation": {"memory": "Hook", "contextMemory": "1.5Gi", "onExcess": "Evict"},
                }
                for at in range(12)
            ),
            plugin=CONTAINERS,
        ),
        id="isolation in twelve rules",
    ),
]


@pytest.mark.parametrize("body", GOOD)
def test_a_good_policy_is_taken(cluster: LocalCluster, body: Json) -> None:
    assert submit(cluster, body)["spec"]["nodes"]


def test_what_is_left_out_is_filled_in(cluster: LocalCluster) -> None:
    spec = submit(cluster, policy({"names": ["gpu-1"]}))["spec"]
    assert spec["memoryUnit"] == "1Gi"
    assert spec["placement"] == {
        "strategy": "Binpack",
        "candidates": 16,
        "preemption": "Enabled",
        "weight": 5,
    }
    assert spec["scheduler"] == {"backend": "KubeScheduler", "extenderPort": 22766, "timeoutSeconds": 120}
    assert spec["nodes"][0]["devices"]["source"] == "NVML"


@pytest.mark.parametrize(
    "sample", sorted((ROOT / "config" / "samples").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_sample_is_taken(cluster: LocalCluster, sample: Path) -> None:
    for body in yaml.safe_load_all(sample.read_text()):
        assert submit(cluster, body)["metadata"]["name"] == body["metadata"]["name"]


@pytest.fixture
def stored(cluster: LocalCluster) -> Iterator[str]:
    """A policy that is there and selects no node."""
    body = policy({"names": ["nowhere"], "devices": SIMULATED}, name="shown")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    yield "shown"
    cluster.kubectl("delete", "gsp", "shown", "--timeout=240s")


def test_policies_are_found_by_category_and_short_name(cluster: LocalCluster, stored: str) -> None:
    for name in ("gpushare", "gsp", "gpusharepolicies"):
        assert stored in cluster.kubectl("get", name)
    assert cluster.kubectl("get", "gsp").splitlines()[0].split() == (
        ["NAME", "READY", "NODES", "CARDS", "UNIT", "ALLOCATED", "BOOKS", "DEGRADED", "REASON", "AGE"]
    )


def share_node(**status: Any) -> Json:
    spec = {"policy": "", "mode": "Memory", "memoryUnit": "1Gi"}
    kind = {"apiVersion": "gpushare.io/v1alpha1", "kind": "GPUShareNode", "metadata": {"name": "tried"}}
    return {**kind, "spec": spec, "status": status}


def card(**extra: Any) -> Json:
    return {"index": 0, "uuid": "GPU-0", "memory": "16Gi", "units": 16, **extra}


@pytest.fixture
def tried(cluster: LocalCluster) -> Iterator[None]:
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(share_node()))
    yield
    cluster.kubectl("delete", "gsn", "tried")


def report(cluster: LocalCluster, status: Json, *way: str) -> Json:
    """Writes the status of the GPUShareNode ``tried`` and returns what is kept."""
    patch = json.dumps({"status": status})
    options = ("--subresource=status", "--type=merge", "-o", "json", "--patch-file=/dev/stdin", *way)
    kept: Json = json.loads(cluster.kubectl("patch", "gsn", "tried", *options, stdin=patch))
    return kept


@pytest.mark.usefixtures("tried")
@pytest.mark.parametrize(
    ("status", "field"),
    [
        pytest.param({"cards": [card(uuid="GPU-\x1b[2J")]}, "status.cards[0].uuid", id="escape"),
        pytest.param({"cards": [card(uuid="x" * 64)]}, "status.cards[0].uuid", id="a long UUID"),
        pytest.param({"cards": [card(model="A\u202eB")]}, "status.cards[0].model", id="direction"),
        pytest.param({"cards": [card(healthReason="a\x9bb")]}, "status.cards[0].healthReason", id="C1"),
        pytest.param({"summary": "a\u2028b"}, "status.summary", id="line separator"),
        pytest.param({"summary": "x" * 40_000}, "status.summary", id="a long text"),
    ],
)
def test_a_status_that_people_must_not_see_is_refused(
    cluster: LocalCluster, status: Json, field: str
) -> None:
    with pytest.raises(LocalClusterError) as refusal:
        report(cluster, status)
    assert field in str(refusal.value)


@pytest.mark.usefixtures("tried")
def test_a_status_as_the_plugin_writes_it_is_kept(cluster: LocalCluster) -> None:
    """However odd what it was told."""
    status = odd_status().to_json()
    assert report(cluster, status)["status"]["cards"] == status["cards"]


@pytest.mark.usefixtures("tried")
def test_what_was_stored_before_there_were_bounds_stays_until_it_is_changed(cluster: LocalCluster) -> None:
    if not is_on(STATUS_RATCHETING, cluster.kubernetes):
        pytest.skip(f"{cluster.kubernetes.name} judges the whole of a status at each write")
    crd = yaml.safe_load((ROOT / "crds" / "gpushare.io_gpusharenodes.yaml").read_text())
    unbounded = json.loads(json.dumps(crd))
    schema = unbounded["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    schema["properties"]["cards"]["items"]["properties"]["model"] = {"type": "string"}
    cluster.kubectl("replace", "-f", "-", stdin=json.dumps(unbounded))
    try:
        wait_until("no bounds", lambda: is_taken(cluster, "x\x1b"), interval=0.5)
    finally:
        cluster.kubectl("replace", "-f", "-", stdin=json.dumps(crd))
    wait_until("bounds", lambda: not is_taken(cluster, "y\x1b", "--dry-run=server"), interval=0.5)
    assert report(cluster, {"summary": "1/16"})["status"]["cards"][0]["model"] == "x\x1b"
    assert report(cluster, {"cards": [card(model="T20")]})["status"]["cards"][0]["model"] == "T20"


def test_a_policy_that_was_stored_before_its_selectors_were_judged_is_still_written_to(
    cluster: LocalCluster,
) -> None:
    """The operator has to write its status, and take its finalizer off, and people change the rest of it."""
    crd = yaml.safe_load((ROOT / "crds" / "gpushare.io_gpusharepolicies.yaml").read_text())
    earlier = json.loads(json.dumps(crd))
    spec = earlier["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["nodes"]["x-kubernetes-validations"]
    rules = spec["nodes"]["items"]["properties"]
    selector = rules["selector"]["properties"]
    for judged in (
        selector["matchExpressions"]["items"],
        selector["matchLabels"]["additionalProperties"],
        rules["names"]["items"],
    ):
        del judged["x-kubernetes-validations"]
    twice = {"selector": {"matchExpressions": [{"key": "nobody", "operator": "In"}]}, "mode": "Off"}
    never = {"selector": {"matchLabels": {"gpu": "Tesla V100"}}, "mode": "Off"}
    pattern = {"names": ["gpu-*"], "mode": "Off"}
    stored = policy(twice, twice, never, pattern, name="stored")
    cluster.kubectl("replace", "-f", "-", stdin=json.dumps(earlier))
    try:
        wait_until("no rules", lambda: is_created(cluster, stored), interval=0.5)
    finally:
        cluster.kubectl("replace", "-f", "-", stdin=json.dumps(crd))
    wait_until("rules", lambda: not is_accepted(cluster, {**stored, "metadata": {"name": "x"}}))
    cluster.kubectl("annotate", "gsp", "stored", "a=b")
    if is_on(STATUS_RATCHETING, cluster.kubernetes):
        status = json.dumps({"status": {"observedGeneration": 1}})
        cluster.kubectl("patch", "gsp", "stored", "--subresource=status", "--type=merge", "-p", status)
    unit = json.dumps({"spec": {"memoryUnit": "2Gi"}})
    cluster.kubectl("patch", "gsp", "stored", "--type=merge", "-p", unit)
    cluster.kubectl("delete", "gsp", "stored", "--timeout=240s")


def is_created(cluster: LocalCluster, body: Json) -> bool:
    try:
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(body))
    except LocalClusterError:
        return False
    return True


def is_accepted(cluster: LocalCluster, body: Json) -> bool:
    try:
        submit(cluster, body)
    except LocalClusterError:
        return False
    return True


def is_taken(cluster: LocalCluster, model: str, *way: str) -> bool:
    try:
        report(cluster, {"cards": [card(model=model)]}, *way)
    except LocalClusterError:
        return False
    return True
