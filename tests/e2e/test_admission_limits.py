"""Admission policies decide on the largest objects as on all others: no expression costs more than it may.

The API server stops an expression at 1,000,000 units, and then refuses the request whatever it is. Numbers of
parts are near the most that etcd takes of one object.
"""

import asyncio
import dataclasses
import itertools
import json
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from tests.e2e.busy_server import until_decided
from tests.e2e.kubernetes_features import skip_unless_pods_are_pointed
from tests.e2e.observe import NODES, PATIENCE, PODS, POLICIES, SHARE_NODES, Json
from tests.e2e.product import SYSTEM
from tests.e2e.rights import await_right
from tests.e2e.test_manifests import ROOT, allocation

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("product")]

NODE = "large"
"""Has no kubelet: nothing of such a pod needs to run."""
COLLECTIONS = {"Node": NODES, "Pod": PODS, "GPUSharePolicy": POLICIES, "GPUShareNode": SHARE_NODES}
STARTUP = "startup-taint.cluster-autoscaler.kubernetes.io/gpushare"
MEMORY: Json = {"gpushare.io/memory": "1"}
MAX_ASKING = 128
"""Containers of a pod that may ask for a share of a card."""
MAX_VARIABLES = 1000
"""Of a container that asks for a share of a card."""
ALL = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


def tiny(number: int) -> dict[str, str]:
    """As many keys as that, as short as can be, without values."""
    alphabet = string.ascii_letters + string.digits
    words = itertools.chain.from_iterable(itertools.product(alphabet, repeat=length) for length in (1, 2, 3))
    return {"".join(letters): "" for letters in itertools.islice(words, number)}


def full(number: int) -> dict[str, str]:
    """Annotations that fill what a pod may have: 262,144 bytes of keys and values."""
    return dict.fromkeys(tiny(number), "x" * (262144 // number - 4))


def many(domain: str, number: int) -> Json:
    """Limits."""
    return {f"{domain}/{number}": "1" for number in range(number)}


def container(name: object, limits: Json | None = None, env: list[Json] | None = None) -> Json:
    return {"name": f"c{name}", "image": "b", "env": env or [], "resources": {"limits": limits or {}}}


def large_pod(containers: list[Json], **metadata: Any) -> Json:
    spec = {"containers": containers, "schedulerName": "nobody"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large", **metadata}, "spec": spec}


def as_account(cluster: LocalCluster, name: str, path: str, patch: Json, *, on: str = "") -> None:
    """Merges as our account ``name``, whose pod is on the node ``on``. Raises ``ApiError`` when refused."""
    bound = [f"--bound-object-name={on}", "--bound-object-kind=Node"] if on else []
    token = cluster.kubectl("create", "token", f"gpushare-{name}", "-n", SYSTEM, *bound)
    merge(dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token), path, patch)


def merge(credentials: Credentials, path: str, patch: Json) -> None:
    """Raises ``ApiError`` when refused.

    On a busy machine an API server may need longer for such an object than the 34 s that it takes for a call.
    """

    async def send() -> None:
        async with KubeClient(credentials, timeout=PATIENCE) as client:
            await client.merge(path, patch)

    until_decided(lambda: asyncio.run(send()))


def made(
    cluster: LocalCluster, body: Json, *options: str, namespace: str = "", dry_run: bool = False
) -> Json:
    """Returns what the API server makes of ``body``, or would with ``dry_run``.

    kubectl sends and prints the bytes: reading so large an object takes it longer than the API server.
    """
    path = COLLECTIONS[body["kind"]].format(namespace=namespace)
    text, calls = json.dumps(body), itertools.count()
    asked = f"{path}?dryRun=All" if dry_run else path

    def make() -> str:
        is_again = next(calls) > 0
        try:
            return cluster.kubectl("create", "--raw", asked, "-f", "-", *options, stdin=text)
        except LocalClusterError as error:
            if not is_again or "(AlreadyExists)" not in str(error):
                raise
            return cluster.kubectl("get", "--raw", f"{path}/{body['metadata']['name']}")

    answer: Json = json.loads(until_decided(make))
    return answer


@pytest.fixture(scope="module")
def node(cluster: LocalCluster) -> Iterator[str]:
    made(cluster, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    yield NODE
    cluster.kubectl("delete", "node", NODE)


@contextmanager
def policy_without_operator(cluster: LocalCluster, **metadata: Any) -> Iterator[None]:
    """A policy with ``metadata`` that nobody looks after."""
    devices = {"source": "Simulated", "simulated": [{"count": 1, "memory": "1Gi"}]}
    rule = {"names": ["nobody"], "mode": "Memory", "devices": devices}
    kind = {"apiVersion": "gpushare.io/v1alpha1", "kind": "GPUSharePolicy"}
    scale = ("scale", "deployment/gpushare-operator", "-n", SYSTEM)
    rollout = ("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM)
    pods = ("pods", "-l", "app.kubernetes.io/component=operator", "-n", SYSTEM)
    try:
        cluster.kubectl(*scale, "--replicas=0")
        cluster.kubectl(*rollout, "--timeout=240s")
        cluster.kubectl("wait", "--for=delete", *pods, "--timeout=240s")
        made(cluster, {**kind, "metadata": {"name": "away", **metadata}, "spec": {"nodes": [rule]}})
        yield
    finally:
        cluster.kubectl("delete", "gsp", "away", "--ignore-not-found")
        cluster.kubectl(*scale, "--replicas=1")
        cluster.kubectl(*rollout, "--timeout=240s")


@pytest.fixture(scope="module")
def marked(cluster: LocalCluster) -> Iterator[None]:
    """As if nodes served units of memory, and a policy refused containers that show themselves cards."""
    annotations = {"gpushare.io/served": "aliyun.com/gpu-mem,gpushare.io/memory"}
    labels = {"gpushare.io/admission": "Deny"}
    with policy_without_operator(cluster, labels=labels, annotations=annotations):
        yield


ANNOTATIONS = [
    pytest.param({"annotations": full(22_000)}, id="22,000 annotations that fill a pod"),
    pytest.param({"annotations": tiny(65_000)}, id="65,000 annotations without values"),
    pytest.param({"annotations": {"b": ""}, "labels": tiny(30_000)}, id="30,000 labels"),
]


@pytest.mark.parametrize("metadata", ANNOTATIONS)
def test_a_plugin_sets_a_large_pod_right_and_nothing_else_of_it(
    cluster: LocalCluster, namespace: str, node: str, metadata: Mapping[str, Json]
) -> None:
    body = large_pod([container(0)], **metadata)
    body["spec"]["nodeName"] = node
    uid = made(cluster, body, namespace=namespace)["metadata"]["uid"]
    path = f"{PODS.format(namespace=namespace)}/large"

    def annotate(annotations: Mapping[str, str | None]) -> None:
        as_account(cluster, "plugin", path, {"metadata": {"annotations": {**annotations}}}, on=node)

    annotate({"gpushare.io/allocation": allocation(node, uid)})
    annotate({"ALIYUN_COM_GPU_MEM_IDX": "0"})
    annotate({"ALIYUN_COM_GPU_MEM_IDX": None})
    others: list[Mapping[str, str | None]] = [
        {"other": ""},
        {"a": "changed"},
        {"a": None},
        {"a": None, "other": ""},
        {"gpushare.io/allocation": None, "other": ""},
    ]
    for annotations in others if "labels" not in metadata else others[:1]:
        with pytest.raises(ApiError, match="may change only the annotation gpushare"):
            annotate(annotations)
    # Nobody else ends it: its node has no kubelet.
    cluster.kubectl("delete", "--raw", f"{path}?gracePeriodSeconds=0")


@pytest.mark.parametrize("metadata", ANNOTATIONS)
def test_nobody_else_changes_an_allocation_of_a_large_pod(
    cluster: LocalCluster, namespace: str, metadata: Mapping[str, Json]
) -> None:
    made(cluster, large_pod([container(0)], **metadata), namespace=namespace)
    path, credentials = f"{PODS.format(namespace=namespace)}/large", from_kubeconfig(cluster.kubeconfig)
    merge(credentials, path, {"metadata": {"annotations": {"other": "x"}}})
    with pytest.raises(ApiError, match=r"only gpushare may change the annotation gpushare\.io/allocation"):
        merge(credentials, path, {"metadata": {"annotations": {"gpushare.io/allocation": "x"}}})


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            large_pod(
                [container(number, MEMORY if number < MAX_ASKING else None) for number in range(8_000)]
            ),
            id="8,000 containers",
        ),
        pytest.param(
            large_pod([container(0, MEMORY, [{"name": f"A{number}"} for number in range(MAX_VARIABLES)])]),
            id="1,000 variables",
        ),
        pytest.param(
            large_pod([container(0, MEMORY, [{"name": "CUDA_VISIBLE_DEVICES"}] * MAX_VARIABLES)]),
            id="1,000 of an application",
        ),
        pytest.param(large_pod([container(0, MEMORY, [VOID] * MAX_VARIABLES)]), id="1,000 that hide all"),
        pytest.param(
            large_pod([container(number, MEMORY, [VOID] * 200) for number in range(MAX_ASKING)]),
            id="containers that hide all",
        ),
        pytest.param(
            large_pod([container(0, {**MEMORY, **{f"a.b/{number}": "1" for number in range(30_000)}})]),
            id="30,000 resources",
        ),
        pytest.param(
            large_pod(
                [container(number, MEMORY, [VOID] * 30) for number in range(MAX_ASKING)],
                annotations={f"a{number}": "x" * 180 for number in range(1024)},
            ),
            id="as much of everything as may be",
        ),
    ],
)
def test_a_large_pod_that_harms_nobody_may_run(cluster: LocalCluster, namespace: str, body: Json) -> None:
    assert made(cluster, body, namespace=namespace, dry_run=True)["metadata"]["name"] == "large"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(
            large_pod([*(container(number) for number in range(9_000)), container("last", MEMORY, [ALL])]),
            "container clast asks for a share of a card and sets NVIDIA_VISIBLE_DEVICES itself",
            id="9,000 containers",
        ),
        pytest.param(
            large_pod(
                [
                    *(container(number, {"gpushare.io/card": "1"}) for number in range(7_000)),
                    container("last", MEMORY, [ALL]),
                ]
            ),
            "7001 containers of the pod ask for a share of a card; at most 128 may",
            id="7,000 containers that ask",
        ),
        pytest.param(
            large_pod([container(0, MEMORY, [{"name": f"A{number}"} for number in range(30_000)])]),
            "container c0 sets 30000 variables; one that asks for a share of a card may set at most 1000",
            id="30,000 variables",
        ),
        pytest.param(
            large_pod([container(0, MEMORY, [*([{"name": "CUDA_VISIBLE_DEVICES"}] * 999), ALL])]),
            "container c0 asks for a share of a card and sets NVIDIA_VISIBLE_DEVICES itself",
            id="1,000 of an application",
        ),
        pytest.param(
            large_pod(
                [
                    *(container(number, {"nvidia.com/gpu": "0", "a.b/c": "1"}) for number in range(100)),
                    *(container(number, {"a.b/c": "1"}) for number in range(100, 6_000)),
                    container("last", {**MEMORY, "gpushare.io/card": "1"}),
                ]
            ),
            "container clast asks for gpushare.io/memory and gpushare.io/card",
            id="6,000 containers, one of which asks for two",
        ),
        pytest.param(
            large_pod([container(0, MEMORY, [ALL])], annotations=tiny(65_000)),
            "the pod has 65000 annotations; a pod that asks for a share of a card may have at most 1024",
            id="65,000 annotations",
        ),
        pytest.param(
            large_pod(
                [
                    container(
                        0,
                        {
                            **{f"a.b/{number}": "1" for number in range(30_000)},
                            **MEMORY,
                            "tuya.com/sgpu": "1",
                        },
                    )
                ]
            ),
            "container c0 asks for gpushare.io/memory and tuya.com/sgpu",
            id="30,000 resources",
        ),
    ],
)
def test_a_large_pod_is_refused_for_what_is_wrong_with_it(
    cluster: LocalCluster, namespace: str, body: Json, told: str
) -> None:
    with pytest.raises(LocalClusterError) as refusal:
        made(cluster, body, namespace=namespace, dry_run=True)
    assert told in str(refusal.value)


@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "GPUSHARE_CARD"])
def test_a_pod_that_names_its_cards_a_thousand_times_is_refused(
    cluster: LocalCluster, namespace: str, name: str
) -> None:
    body = large_pod([container(0, MEMORY, [{"name": name, "value": "all"}] * MAX_VARIABLES)])
    with pytest.raises(LocalClusterError, match=f"container c0 asks for a share of a card and sets {name}"):
        made(cluster, body, namespace=namespace, dry_run=True)


def test_a_binding_with_many_annotations_is_judged_by_ours(cluster: LocalCluster, namespace: str) -> None:
    made(cluster, large_pod([container(0)]), namespace=namespace)
    path = f"{PODS.format(namespace=namespace)}/large/binding"

    def bind(annotations: Json) -> None:
        target = {"kind": "Node", "name": "gpu-1"}
        metadata = {"name": "large", "annotations": annotations}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        way = ("create", "--raw", f"{path}?dryRun=All", "-f", "-")
        until_decided(lambda: cluster.kubectl(*way, stdin=json.dumps(body)))

    bind(tiny(65_000))
    for key in ("gpushare.io/allocation", "volcano.sh/gpu-index"):
        with pytest.raises(LocalClusterError, match=f"may create a Binding with the annotation {key}"):
            bind({**tiny(65_000), key: "0"})


@pytest.fixture(
    scope="class",
    params=[
        pytest.param({"labels": 20_000}, id="20,000 labels"),
        pytest.param({"annotations": 22_000}, id="22,000 annotations"),
        pytest.param({"taints": 8_000}, id="8,000 taints"),
        pytest.param({"resources": 15_000}, id="15,000 resources"),
        pytest.param({"labels": 5_000, "annotations": 5_000, "taints": 500, "resources": 500}, id="all"),
    ],
)
def much(cluster: LocalCluster, request: pytest.FixtureRequest) -> Iterator[Json]:
    """A node that has much of something. Making one costs the API server and its clients seconds."""
    amounts = {"labels": 1, "annotations": 1, "taints": 1, "resources": 1, **request.param}
    taints = [{"key": f"t{number}", "effect": "NoSchedule"} for number in range(amounts["taints"])]
    resources = {f"a.b/{number}": "1" for number in range(amounts["resources"])}
    body: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "much",
            "labels": {**tiny(amounts["labels"]), "gpushare.io/mode": "Slices"},
            "annotations": tiny(amounts["annotations"]),
        },
        "spec": {"taints": [*taints, {"key": STARTUP, "effect": "NoSchedule"}]},
        "status": {"capacity": {**resources, "gpushare.io/memory": "1"}, "allocatable": resources},
    }
    yield made(cluster, body)
    cluster.kubectl("delete", "node", "much")


class TestNode:
    """What the operator changes of a node that has much of something."""

    def patch(self, cluster: LocalCluster, body: Json, *, status: bool = False) -> None:
        as_account(cluster, "operator", f"{NODES}/much{'/status' if status else ''}", body)

    def takes_off_startup_taint(self, cluster: LocalCluster) -> bool:
        """Tries to; returns False where a controller has changed the node meanwhile."""
        node = json.loads(cluster.kubectl("get", "--raw", f"{NODES}/much"))
        others = [taint for taint in node["spec"]["taints"] if taint["key"] != STARTUP]
        seen = {"resourceVersion": node["metadata"]["resourceVersion"], "labels": {"gpushare.io/mode": None}}
        try:
            self.patch(cluster, {"metadata": seen, "spec": {"taints": others}})
        except ApiError as error:
            if error.is_conflict:
                return False
            raise
        return True

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            pytest.param({"metadata": {"labels": {"other": ""}}}, "only these labels", id="a label more"),
            pytest.param({"metadata": {"labels": {"a": "x"}}}, "only these labels", id="another label"),
            pytest.param(
                {"metadata": {"labels": {"gpushare.io/mode": None, "other": ""}}},
                "only these labels",
                id="a label for ours",
            ),
            pytest.param(
                {"metadata": {"annotations": {"a": None}}}, "only these annotations", id="an annotation"
            ),
            pytest.param({"spec": {"taints": []}}, "and remove the taint", id="all taints"),
            pytest.param({"spec": {"podCIDR": "10.1.0.0/24"}}, "and remove the taint", id="another field"),
        ],
    )
    @pytest.mark.usefixtures("much")
    def test_nothing_else_is(self, cluster: LocalCluster, body: Json, told: str) -> None:
        with pytest.raises(ApiError, match=told):
            self.patch(cluster, body)

    @pytest.mark.parametrize(
        "capacity",
        [
            pytest.param({"a.b/0": "2"}, id="another amount"),
            pytest.param({"a.b/0": None}, id="a resource less"),
            pytest.param({"x.y/z": "1"}, id="a resource more"),
            pytest.param({"gpushare.io/memory": "2"}, id="another amount of ours"),
            pytest.param({"gpushare.io/slice": "2"}, id="one of ours more"),
        ],
    )
    @pytest.mark.usefixtures("much")
    def test_no_capacity_is_made(self, cluster: LocalCluster, capacity: Json) -> None:
        with pytest.raises(ApiError, match="may only remove"):
            self.patch(cluster, {"status": {"capacity": capacity}}, status=True)

    @pytest.mark.usefixtures("much")
    def test_what_is_ours_is_changed(self, cluster: LocalCluster) -> None:
        """The last one, as the node is the same for all."""
        self.patch(cluster, {"metadata": {"labels": {"gpushare.io/mode": "Memory", "gpushare": "true"}}})
        wait_until(
            "the taint is off", lambda: self.takes_off_startup_taint(cluster), timeout=PATIENCE, interval=0.1
        )
        self.patch(cluster, {"metadata": {"annotations": {"volcano.sh/gpu-unhealthy-ids": "0"}}})
        self.patch(cluster, {"status": {"capacity": {"gpushare.io/memory": None}}}, status=True)


def test_who_looks_after_cards_cordons_on_an_object_with_many_annotations(cluster: LocalCluster) -> None:
    spec = {"policy": "", "mode": "Memory", "memoryUnit": "1Gi"}
    kind = {"apiVersion": "gpushare.io/v1alpha1", "kind": "GPUShareNode"}
    made(cluster, {**kind, "metadata": {"name": NODE, "annotations": tiny(60_000)}, "spec": spec})
    cluster.kubectl("create", "clusterrolebinding", "nurse", "--clusterrole=gpushare-cards", "--user=nurse")

    def annotate(change: str) -> None:
        way = ("annotate", "--overwrite", "gsn", NODE, change, "--as=nurse")
        until_decided(lambda: cluster.kubectl(*way))

    try:
        await_right(cluster, "patch", "gpusharenodes", "--as=nurse")
        annotate("gpushare.io/cordon=0")
        for change in ("other=x", "a=x", "a-"):
            with pytest.raises(LocalClusterError, match="you may change only the annotations"):
                annotate(change)
    finally:
        cluster.kubectl("delete", "clusterrolebinding", "nurse")
        cluster.kubectl("delete", "--raw", f"{SHARE_NODES}/{NODE}")


@pytest.fixture(scope="class")
def dedicated(cluster: LocalCluster) -> Iterator[None]:
    """As if our own kube-scheduler placed the pods of a policy."""
    skip_unless_pods_are_pointed(cluster.kubernetes)
    manifest = str(ROOT / "manifests" / "dedicated" / "pods.yaml")
    with policy_without_operator(cluster):
        status = json.dumps({"status": {"backend": "Dedicated"}})
        cluster.kubectl("patch", "gsp", "away", "--subresource=status", "--type=merge", "-p", status)
        cluster.kubectl("apply", "-f", manifest)
        yield
        cluster.kubectl("delete", "-f", manifest)


class TestDedicated:
    """Where our own kube-scheduler places the pods of a policy."""

    pytestmark = pytest.mark.usefixtures("dedicated")

    @pytest.mark.parametrize(
        "containers",
        [
            pytest.param([], id="one container"),
            pytest.param([container(number) for number in range(9_000)], id="9,000 containers"),
            pytest.param(
                [container(number, {"a.b/gpu": "1"}) for number in range(7_000)],
                id="7,000 that ask for something else",
            ),
            pytest.param(
                [container(0, {f"a.b/{number}": "1" for number in range(30_000)})], id="30,000 resources"
            ),
        ],
    )
    def test_a_large_pod_comes_to_our_own_scheduler(
        self, cluster: LocalCluster, namespace: str, containers: list[Json]
    ) -> None:
        body = large_pod([*containers, container("last", MEMORY)])
        del body["spec"]["schedulerName"]

        def scheduler() -> str:
            answer = made(cluster, body, namespace=namespace, dry_run=True)
            return str(answer["spec"]["schedulerName"])

        wait_until(
            "the policy is in force",
            lambda: scheduler() == "gpushare-scheduler",
            timeout=PATIENCE,
            interval=1.0,
        )


class TestMarked:
    """Where a policy tells admission what nodes serve."""

    pytestmark = pytest.mark.usefixtures("marked")

    @pytest.mark.parametrize(
        "containers",
        [
            pytest.param(
                [*(container(number, {"aliyun.com/gpu-mem": "1"}, [VOID]) for number in range(4_000))],
                id="4,000 containers",
            ),
            pytest.param(
                [
                    container(
                        0, {"aliyun.com/gpu-mem": "1"}, [{"name": f"A{number}"} for number in range(30_000)]
                    )
                ],
                id="30,000 variables",
            ),
        ],
    )
    def test_who_makes_a_large_pod_in_the_words_of_a_replaced_system_is_warned(
        self, cluster: LocalCluster, namespace: str, containers: list[Json]
    ) -> None:
        last = container("last", {"aliyun.com/gpu-mem": "1"}, [ALL])
        with pytest.raises(LocalClusterError, match="container clast asks for a share of a card and sets"):
            made(
                cluster,
                large_pod([*containers, last]),
                "--warnings-as-errors",
                namespace=namespace,
                dry_run=True,
            )

    def told(self, cluster: LocalCluster, namespace: str, containers: list[Json]) -> str:
        """Returns what whoever makes the pod is warned of, or told; empty where that is nothing."""
        try:
            made(cluster, large_pod(containers), "--warnings-as-errors", namespace=namespace, dry_run=True)
        except LocalClusterError as error:
            return str(error)
        return ""

    @pytest.fixture(autouse=True)
    def looked_at(self, cluster: LocalCluster, namespace: str) -> None:
        """The API server has seen the policy."""
        wait_until(
            "the policy is looked at",
            lambda: (
                "which no node serves"
                in self.told(cluster, namespace, [container(0, {"gpushare.io/mem": "1"})])
            ),
            timeout=PATIENCE,
            interval=1.0,
        )

    @pytest.mark.parametrize(
        "containers",
        [
            pytest.param(
                [
                    *(container(number) for number in range(9_000)),
                    container("last", {"gpushare.io/mem": "1"}),
                ],
                id="9,000 containers",
            ),
            pytest.param(
                [
                    container(
                        0, {**{f"a.b/{number}": "1" for number in range(30_000)}, "gpushare.io/mem": "1"}
                    )
                ],
                id="30,000 resources",
            ),
            pytest.param(
                [container(0, {f"gpushare.io/{number}": "1" for number in range(20_000)})],
                id="20,000 that nobody serves",
            ),
        ],
    )
    def test_who_asks_for_what_nobody_serves_is_warned(
        self, cluster: LocalCluster, namespace: str, containers: list[Json]
    ) -> None:
        assert "which no node serves now" in self.told(cluster, namespace, containers)

    @pytest.mark.parametrize(
        "containers",
        [
            pytest.param(
                [*(container(number) for number in range(9_000)), container("last", env=[ALL])],
                id="9,000 containers",
            ),
            pytest.param(
                [container(0, {f"a.b/{number}": "1" for number in range(20_000)}, [ALL])],
                id="20,000 resources",
            ),
        ],
    )
    def test_who_shows_himself_cards_is_refused(
        self, cluster: LocalCluster, namespace: str, containers: list[Json]
    ) -> None:
        told = self.told(cluster, namespace, containers)
        assert "asks for no card and sets NVIDIA_VISIBLE_DEVICES" in told

    @pytest.mark.parametrize(
        "variables",
        [
            pytest.param([*({"name": f"A{number}"} for number in range(20_000)), ALL], id="20,000 variables"),
            pytest.param(
                [*([{"name": "CUDA_VISIBLE_DEVICES"}] * 20_000), ALL], id="20,000 of an application"
            ),
            pytest.param([ALL] * 20_000, id="20,000 that show all"),
            pytest.param([VOID] * 20_000, id="20,000 that hide all"),
        ],
    )
    def test_more_variables_than_are_looked_through_are_refused(
        self, cluster: LocalCluster, namespace: str, variables: list[Json]
    ) -> None:
        told = self.told(cluster, namespace, [container(0, env=variables)])
        assert f"sets {len(variables)} variables; gpushare checks at most 1000" in told

    @pytest.mark.parametrize(
        "containers",
        [
            pytest.param([container(number, env=[VOID]) for number in range(4_000)], id="4,000 containers"),
            pytest.param(
                [container(0, {f"a.b/{number}": "1" for number in range(30_000)})], id="30,000 resources"
            ),
        ],
    )
    def test_who_harms_nobody_is_told_nothing(
        self, cluster: LocalCluster, namespace: str, containers: list[Json]
    ) -> None:
        told = self.told(cluster, namespace, containers)
        assert "ValidatingAdmissionPolicy" not in told, "the API server itself warns of names that repeat"
