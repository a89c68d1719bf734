"""Health ports on real pods: strangers keep no kubelet from an answer, and who may come is installed."""

import sys
from collections.abc import Iterator

import pytest
from tests.e2e.observe import PODS, Json, get
from tests.e2e.product import SYSTEM, Product, policy
from tests.fakes import strangers

from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

ATTEMPTS = 3
"""At most: other clusters on the same machine may slow down a probe."""
ALL = f"{strangers.PROBES}\n"


@pytest.fixture(scope="module", autouse=True)
def in_force(product: Product) -> Iterator[None]:
    with product.in_force(policy("default", nodes=["gpu-1"])):
        yield


def pod_of(cluster: LocalCluster, component: str) -> Json:
    """Returns the pod of a program; of the plugin that on ``gpu-1``."""
    label = "app.kubernetes.io/component"
    pods: list[Json] = get(cluster, PODS.format(namespace=SYSTEM))["items"]
    here = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    found = [pod for pod in here if pod["metadata"]["labels"].get(label) == component]
    return next(pod for pod in found if component != "plugin" or pod["spec"]["nodeName"] == "gpu-1")


def health_port(pod: Json) -> tuple[str, int]:
    """Returns where the kubelet asks."""
    container = pod["spec"]["containers"][0]
    asked = container["livenessProbe"]["httpGet"]
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
    return asked.get("host", pod["status"]["podIP"]), int(ports.get(asked["port"], asked["port"]))


def restarts(pod: Json) -> int:
    """Returns how often the pod's only container was started anew, by this test or by an earlier one."""
    (container,) = pod["status"]["containerStatuses"]
    return int(container["restartCount"])


def ready(pod: Json) -> bool:
    """Returns whether the pod's only container is ready."""
    (container,) = pod["status"]["containerStatuses"]
    return bool(container["ready"])


@pytest.mark.parametrize("kind", ["nothing at all", "half a request"])
@pytest.mark.parametrize("component", ["operator", "plugin", "extender"])
def test_a_probe_succeeds_however_many_strangers_are_there(
    cluster: LocalCluster, component: str, kind: str
) -> None:
    before = pod_of(cluster, component)
    host, port = health_port(before)
    command = [sys.executable, strangers.__file__, host, str(port), kind]
    answered = list[str]()
    while len(answered) < ATTEMPTS and ALL not in answered:
        done = cluster.node_exec(before["spec"]["nodeName"], command)
        answered.append(done.stdout or done.stderr)
    assert ALL in answered, answered
    after = pod_of(cluster, component)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert (restarts(after), ready(after)) == (restarts(before), True)


def test_who_may_come_is_said_of_every_pod_that_has_an_address_of_its_own(cluster: LocalCluster) -> None:
    """The local cluster has no network plugin that would enforce it."""
    namespace = f"/apis/networking.k8s.io/v1/namespaces/{SYSTEM}/networkpolicies"
    (installed,) = get(cluster, namespace)["items"]
    assert installed["metadata"]["name"] == "gpushare-health-ports"
    wanted = installed["spec"]["podSelector"]["matchLabels"].items()
    for component in ("operator", "plugin"):
        assert wanted <= pod_of(cluster, component)["metadata"]["labels"].items()
