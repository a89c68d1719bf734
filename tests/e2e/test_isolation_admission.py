"""Pods that ask for a share of a card and bypass its memory limit."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.e2e.busy_server import until_decided
from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import POLICIES, Json, watch_until
from tests.e2e.product import Product, policy
from tests.e2e.test_admission_limits import large_pod

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("isolating")]

MEMORY: Json = {"gpushare.io/memory": "1"}
MPS = {"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/mps"}
SCRATCH = {"name": "v", "emptyDir": {}}
PRIVILEGED: Json = {"privileged": True}
POLICY = "gpushare-isolation-bypass"
SHARED_MEMORY = "/dev" + "/shm"


def container(name: str = "main", limits: Json | None = None, **fields: Any) -> Json:
    return {
        "name": name,
        "image": "x",
        "resources": {"limits": MEMORY if limits is None else limits},
        **fields,
    }


def pod(*containers: Json, name: str = "a", **spec: Any) -> Json:
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }


def setting(name: str, value: str = "x") -> Json:
    return pod(container(env=[{"name": name, "value": value}]))


def adding(*capabilities: str) -> Json:
    return pod(container(securityContext={"capabilities": {"add": capabilities}}))


def mounting(path: str) -> Json:
    return pod(container(volumeMounts=[{"name": "v", "mountPath": path}]), volumes=[SCRATCH])


def of_the_node(path: str) -> Json:
    return pod(container(), volumes=[{"name": "v", "hostPath": {"path": path}}])


def told(cluster: LocalCluster, namespace: str, body: Json, *options: str) -> str:
    """Returns what whoever makes the pod is warned of, or told; empty where that is nothing."""
    arguments = ("create", "-n", namespace, "--dry-run=server", "--warnings-as-errors", "-f", "-", *options)
    try:
        until_decided(lambda: cluster.kubectl(*arguments, stdin=json.dumps(body)))
    except LocalClusterError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def isolating(product: Product) -> Iterator[None]:
    """Units of memory are served; a rule for other nodes, of which there is none now, asks for isolation."""
    body = policy("default", nodes=WORKERS)
    isolated = {
        "selector": {"matchLabels": {"accelerator": "none-here"}},
        "mode": "Memory",
        "devices": {"source": "NVML"},
        "isolation": {"memory": "Hook"},
    }
    body["spec"]["nodes"].append(isolated)
    with product.in_force(body):
        wait_until(
            "the API server looks at pods",
            lambda: POLICY in told(product.cluster, "default", setting("CUDA_MPS_PIPE_DIRECTORY")),
            interval=0.5,
        )
        yield


@contextmanager
def asked(product: Product, bypass: str) -> Iterator[None]:
    """The policy says ``bypass``, and afterwards ``Warn`` again."""
    ask(product, bypass)
    try:
        yield
    finally:
        ask(product, "Warn")


def ask(product: Product, bypass: str) -> None:
    change = json.dumps({"spec": {"admission": {"isolationBypass": bypass}}})
    product.cluster.kubectl("patch", "gsp", "default", "--type=merge", "-p", change)
    watch_until(
        product.cluster,
        POLICIES,
        lambda found: any(
            each["metadata"].get("labels", {}).get("gpushare.io/isolation-admission") == bypass
            for each in found
        ),
        what=f"a policy has the mark {bypass}",
    )


@pytest.mark.parametrize(
    ("body", "what"),
    [
        pytest.param(
            setting("CUDA_MPS_PIPE_DIRECTORY"),
            "main asks for a share of a card and sets CUDA_MPS_PIPE",
            id="MPS",
        ),
        pytest.param(
            setting("NVIDIA_GPU_MEMORY_LIMIT"), "sets NVIDIA_GPU_MEMORY_LIMIT", id="the driver's limit"
        ),
        pytest.param(
            setting("LD_PRELOAD", "/usr/lib/libcuda.so.1"), "sets LD_PRELOAD", id="the driver's library first"
        ),
        *(
            pytest.param(
                mounting(path), f"mounts the volume v at {path}, over the files", id=f"mount at {path}"
            )
            for path in (
                "/",
                "/etc",
                "/etc/ld.so.preload",
                "/etc/gpushare/limits",
                "/opt/",
                "/opt/gpushare/lib",
            )
        ),
        pytest.param(
            pod(container(securityContext=PRIVILEGED)), "has the privilege privileged", id="privileged"
        ),
        pytest.param(adding("NET_ADMIN", "SYS_ADMIN"), "has the privilege SYS_ADMIN", id="SYS_ADMIN"),
        pytest.param(
            pod(
                container(),
                initContainers=[container("side", {}, restartPolicy="Always", securityContext=PRIVILEGED)],
            ),
            "container side of a pod that asks for a share of a card has the privilege privileged",
            id="a sidecar without units",
        ),
        pytest.param(
            pod(container(limits={}), initContainers=[container("first", env=[MPS])]),
            "container first asks for a share of a card and sets CUDA_MPS",
            id="an init container",
        ),
        pytest.param(pod(container(), hostIPC=True), "has hostIPC", id="hostIPC"),
        pytest.param(pod(container(), hostPID=True), "has hostPID", id="hostPID"),
        *(
            pytest.param(of_the_node(path), f"has hostPath {path}", id=f"hostPath {path}")
            for path in (
                "/",
                "/dev",
                SHARED_MEMORY,
                "/dev/nvidia0",
                "/var/lib",
                "/var/lib/gpushare/isolation",
            )
        ),
    ],
)
def test_who_brings_what_gets_round_the_limit_is_warned(
    cluster: LocalCluster, namespace: str, body: Json, what: str
) -> None:
    warning = told(cluster, namespace, body)
    assert what in warning
    assert "label the namespace gpushare.io/isolation-bypass=allowed" in warning


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(pod(container()), id="a share and nothing else"),
        pytest.param(setting("LD_PRELOAD", "/usr/lib/libtcmalloc.so.4"), id="an allocator before ours"),
        pytest.param(setting("LD_AUDIT", "/usr/lib/audit.so"), id="LD_AUDIT"),
        pytest.param(adding("NET_ADMIN", "SYS_PTRACE"), id="capabilities that get nowhere"),
        *(
            pytest.param(mounting(path), id=f"mount at {path}")
            for path in ("/etc/ssl", "/opt/app", SHARED_MEMORY)
        ),
        pytest.param(of_the_node("/dev/infiniband"), id="another device"),
        pytest.param(
            pod(container(limits={}, env=[MPS], securityContext=PRIVILEGED), hostIPC=True),
            id="no share at all",
        ),
        pytest.param(
            pod(container(limits={"gpushare.io/memory": "0"}, securityContext=PRIVILEGED)), id="none of it"
        ),
        pytest.param(pod(container(), container("other", {}, env=[MPS])), id="a container without units"),
        pytest.param(
            pod(container(limits={"gpushare.io/slice": "1"}, env=[MPS])),
            id="what is served without isolation",
        ),
    ],
)
def test_nobody_else_is(cluster: LocalCluster, namespace: str, body: Json) -> None:
    assert POLICY not in told(cluster, namespace, body)


def test_a_warning_refuses_nothing(cluster: LocalCluster, namespace: str) -> None:
    body = json.dumps(pod(container(env=[MPS])))
    assert "pod/a created" in cluster.kubectl(
        "create", "-n", namespace, "--dry-run=server", "-f", "-", stdin=body
    )


def test_where_it_is_denied_such_a_pod_is_refused(
    cluster: LocalCluster, namespace: str, product: Product
) -> None:
    with asked(product, "Deny"):
        wait_until(
            "it is refused",
            lambda: "is forbidden" in told(cluster, namespace, pod(container(env=[MPS]))),
            interval=0.5,
        )
        assert told(cluster, namespace, pod(container())) == ""


def test_where_it_is_allowed_nobody_is_told(cluster: LocalCluster, namespace: str, product: Product) -> None:
    with asked(product, "Allow"):
        wait_until(
            "nobody is told",
            lambda: told(cluster, namespace, pod(container(env=[MPS]))) == "",
            interval=0.5,
        )


def test_a_namespace_that_an_administrator_has_labelled_is_left_alone(
    cluster: LocalCluster, namespace: str
) -> None:
    cluster.kubectl("label", "namespace", namespace, "gpushare.io/isolation-bypass=allowed")
    wait_until(
        "the namespace is left alone",
        lambda: told(cluster, namespace, pod(container(env=[MPS], securityContext=PRIVILEGED))) == "",
        interval=0.5,
    )


def test_a_container_that_is_added_to_look_into_a_pod_is_judged_by_itself(
    cluster: LocalCluster, namespace: str, product: Product
) -> None:
    """``kubectl debug`` stays possible, also in a pod that was made with what is refused by now."""
    body = pod(container(env=[MPS], command=["sleep", "infinity"]), schedulerName="nobody")
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))

    def debug(name: str, profile: str) -> None:
        look = ("debug", "a", "-n", namespace, "--image=x", f"--profile={profile}", "-c", name)
        cluster.kubectl(*look, "--", "true")

    debug("before", "sysadmin")
    with asked(product, "Deny"):
        wait_until(
            "it is refused",
            lambda: "is forbidden" in told(cluster, namespace, pod(container(env=[MPS]), name="b")),
            interval=0.5,
        )
        debug("general", "general")
        with pytest.raises(
            LocalClusterError, match=r"container after of a pod .* has the privilege privileged"
        ):
            debug("after", "sysadmin")


BAD = container(
    "last", env=[MPS], securityContext=PRIVILEGED, volumeMounts=[{"name": "v", "mountPath": "/etc"}]
)


def large(*containers: Json, volumes: list[Json] | None = None) -> Json:
    body = large_pod([*containers, BAD])
    body["spec"]["volumes"] = [*(volumes or []), SCRATCH]
    return body


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(large(*(container(f"c{number}", {}) for number in range(8_000))), id="8,000 containers"),
        pytest.param(
            large(
                *(
                    container(f"c{number}", env=[{"name": f"A{each}"} for each in range(80)])
                    for number in range(120)
                )
            ),
            id="9,600 variables",
        ),
        pytest.param(
            large(
                container(
                    volumeMounts=[{"name": "v", "mountPath": f"/{'x' * 90}{each}"} for each in range(9_000)]
                )
            ),
            id="9,000 mounts",
        ),
        pytest.param(
            large(container(volumeMounts=[{"name": "v", "mountPath": "/" * 800_000}])), id="a long path"
        ),
        pytest.param(
            large(
                volumes=[{"name": f"v{each}", "hostPath": {"path": f"/a/{each}"}} for each in range(9_900)]
            ),
            id="9,900 volumes",
        ),
        pytest.param(
            large(
                container(securityContext={"capabilities": {"add": [f"A{each}" for each in range(9_900)]}})
            ),
            id="9,900 capabilities",
        ),
    ],
)
def test_in_a_large_pod_all_of_it_is_found(cluster: LocalCluster, namespace: str, body: Json) -> None:
    """A policy that costs too much would be left out: its failurePolicy is Ignore."""
    warning = told(cluster, namespace, body)
    for what in (
        "sets CUDA_MPS_PIPE_DIRECTORY",
        "mounts the volume v at /etc",
        "has the privilege privileged",
    ):
        assert what in warning


def test_more_than_is_looked_through_is_no_way_round(cluster: LocalCluster, namespace: str) -> None:
    body = large(volumes=[{"name": f"v{each}", "emptyDir": {}} for each in range(20_000)])
    assert "gpushare checks at most 10000" in told(cluster, namespace, body)
