"""The operator goes while a policy comes or goes: whoever comes after it finishes what was begun."""

import pytest
from tests.e2e.control_plane import files
from tests.e2e.fixtures import WORKERS
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.test_lifecycle import schedules
from tests.e2e.traces import traces

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

PATIENCE = 400.0
"""Seconds. The kubelet waits 10 s, 20 s and so on, up to 300 s, before it starts again what was killed: by an
earlier module, too."""


def test_the_operator_killed_while_a_policy_is_applied_finishes_it(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(policy("default", nodes=WORKERS))
    for _ in range(2):
        kill_operator(cluster)
    product.await_ready("default", seconds=PATIENCE)
    cluster.kubectl("delete", "gpusharepolicy", "default", "--wait=false")
    kill_operator(cluster)
    await_gone(cluster)
    assert not any(traces(cluster).values())
    schedules(cluster, namespace, "after")


def kill_operator(cluster: LocalCluster) -> None:
    """Kill it as soon as it runs (again)."""

    def killed() -> bool:
        running = [
            container
            for container in cluster.containers()
            if container.container == "operator" and container.state == "running"
        ]
        try:
            for operator in running:
                cluster.kill_container(namespace=SYSTEM, pod=operator.pod, container="operator")
        except LocalClusterError:  # it ended between the look and the kill
            return False
        return bool(running)

    wait_until("the operator ran and was killed", killed, timeout=PATIENCE)


def await_gone(cluster: LocalCluster) -> None:
    allowed = f"--timeout={PATIENCE:g}s"
    cluster.kubectl("wait", "--for=delete", "gpusharepolicy/default", allowed, timeout=PATIENCE + 20)


def test_removed_in_the_wrong_order_it_still_restores_the_scheduler_when_it_is_back(
    cluster: LocalCluster, product: Product
) -> None:
    """The namespace goes, and with it operator, extender and all Jobs, while a policy is in force."""
    before = files(cluster)
    product.apply(policy("default", nodes=WORKERS))
    product.await_ready("default")
    cluster.kubectl("delete", "namespace", SYSTEM, "--timeout=240s")
    cluster.kubectl("delete", "gpusharepolicy", "default", "--wait=false")
    product.install()
    await_gone(cluster)
    assert files(cluster) == before
    assert not any(traces(cluster).values())
