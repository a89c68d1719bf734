"""Whose word counts of what a container sees: the plugin's, or that of who makes the pod?"""

import json

import pytest
from tests.e2e.books import read_books
from tests.e2e.observe import PODS, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.workloads import CARD, MEMORY, SLICE, create, pod

from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("shared_policy")]

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
FIELD = {"fieldRef": {"fieldPath": "metadata.annotations['cards']"}}


def asking(environment: list[Json], *, resource: str = MEMORY, units: int = 2) -> Json:
    body = pod("author", {"main": units}, resource=resource, on="gpu-1")
    body["spec"]["containers"][0]["env"] = environment
    return body


def with_init(environment: list[Json]) -> Json:
    body = asking(environment)
    (main,) = body["spec"]["containers"]
    body["spec"]["initContainers"] = [{**main, "name": "init"}]
    body["spec"]["containers"] = [{**main, "env": []}]
    return body


def test_nor_does_who_writes_its_init_containers(cluster: LocalCluster, namespace: str) -> None:
    with pytest.raises(LocalClusterError, match="container init asks for a share of a card and sets ASCEND_"):
        try_out(cluster, namespace, with_init([{"name": "ASCEND_VISIBLE_DEVICES", "value": "0"}]))


def try_out(cluster: LocalCluster, namespace: str, body: Json) -> str:
    """Returns what the API server says to whoever would make the pod."""
    return cluster.kubectl(
        "create", "--dry-run=server", "-n", namespace, "-o", "name", "-f", "-", stdin=json.dumps(body)
    )


@pytest.mark.parametrize(
    ("body", "variable"),
    [
        pytest.param(asking([{"name": VISIBLE, "value": "all"}]), VISIBLE, id="all cards"),
        pytest.param(asking([{"name": VISIBLE, "value": "0"}]), VISIBLE, id="an index"),
        pytest.param(asking([{"name": VISIBLE, "valueFrom": FIELD}]), VISIBLE, id="from elsewhere"),
        pytest.param(asking([{"name": VISIBLE, "value": "all"}], resource=SLICE), VISIBLE, id="slices"),
        pytest.param(asking([{"name": VISIBLE, "value": "all"}], resource=CARD), VISIBLE, id="cards"),
        pytest.param(asking([{"name": "GPUSHARE_CARD", "value": "x"}]), "GPUSHARE_CARD", id="ours"),
        *(
            pytest.param(asking([{"name": name, "value": value}]), name, id=f"{name}={value}")
            for name in ("ASCEND_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES", "DOCKER_RESOURCE_GPU")
            for value in ("0,1,2,3,4,5,6,7", "void", "")
        ),
    ],
)
def test_who_makes_a_pod_does_not_name_its_cards(
    cluster: LocalCluster, namespace: str, body: Json, variable: str
) -> None:
    with pytest.raises(LocalClusterError) as refusal:
        try_out(cluster, namespace, body)
    assert f"container main asks for a share of a card and sets {variable} itself" in str(refusal.value)
    assert "remove it from env" in str(refusal.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(asking([{"name": VISIBLE, "value": "all"}], units=0), id="asks for nothing"),
        pytest.param(asking([{"name": VISIBLE, "value": "void"}]), id="wants to see none"),
        pytest.param(asking([{"name": VISIBLE}]), id="no value"),
        *(
            pytest.param(asking([{"name": name, "value": "0"}]), id=name)
            for name in (
                "CUDA_VISIBLE_DEVICES",
                "HIP_VISIBLE_DEVICES",
                "ASCEND_RT_VISIBLE_DEVICES",
                "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
                "RAY_EXPERIMENTAL_NOSET_RBLN_RT_VISIBLE_DEVICES",
                "SDAA_VISIBLE_DEVICES",
                "TT_VISIBLE_DEVICES",
                "GPU_DEVICE_ORDINAL",
                "ZE_AFFINITY_MASK",
            )
        ),
        pytest.param(with_init([{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]), id="of its own, first"),
        pytest.param(
            asking([{"name": VISIBLE, "value": "all"}], resource="nvidia.com/gpu"), id="NVIDIA's own plugin"
        ),
        pytest.param(
            asking([{"name": VISIBLE, "value": "all"}], resource="aliyun.com/gpu-mem"), id="a replaced system"
        ),
    ],
)
def test_what_harms_nobody_or_is_no_affair_of_ours_may_run(
    cluster: LocalCluster, namespace: str, body: Json
) -> None:
    assert "pod/author" in try_out(cluster, namespace, body)


@pytest.mark.parametrize("name", [VISIBLE, "ASCEND_VISIBLE_DEVICES"])
def test_who_asks_in_the_words_of_a_replaced_system_is_warned(
    cluster: LocalCluster, namespace: str, name: str
) -> None:
    body = json.dumps(asking([{"name": name, "value": "all"}], resource="aliyun.com/gpu-mem"))
    with pytest.raises(LocalClusterError) as warning:
        cluster.kubectl(
            "create", "--dry-run=server", "--warnings-as-errors", "-n", namespace, "-f", "-", stdin=body
        )
    assert f"sets {name} itself" in str(warning.value)


def test_what_a_config_map_brings_wins_and_the_auditor_names_it(
    cluster: LocalCluster, namespace: str
) -> None:
    """The kubelet puts the pod's own variables after the plugin's, and the last one counts."""
    cluster.kubectl("create", "configmap", "cards", f"--from-literal={VISIBLE}=all", "-n", namespace)
    body = asking([])
    body["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "cards"}}]
    create(cluster, namespace, [body])
    watch_until(
        cluster, PODS.format(namespace=namespace), lambda pods: any(map(is_running, pods)), what="it runs"
    )
    (told,) = [container.env for container in cluster.containers() if container.namespace == namespace]
    assert told[VISIBLE] == "all", "a kubelet that lets the plugin win makes the policy needless"
    assert told["GPUSHARE_CARD"].startswith("GPU-")
    wait_until(
        "the auditor names what the container sees, and nothing else",
        lambda: (
            {difference.kind for difference in read_books(cluster, namespace).differences()}
            == {DifferenceKind.ENVIRONMENT_DIFFERS}
        ),
        interval=0.5,
    )
