"""A cluster whose Kubernetes goes from one minor to the next while pods of the product run in it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.e2e.books import read_cluster
from tests.e2e.control_plane import CONTROL_PLANE, MANIFEST
from tests.e2e.fixtures import await_agreement
from tests.e2e.holdings import holdings
from tests.e2e.observe import NODES, PODS, Json, get, is_true, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, named
from tests.e2e.workloads import MEMORY, create, create_namespace, pod

from gpushare_core.audit.auditor import differences
from gpushare_core.process.version import VERSION
from gpushare_localcluster.build.minors import Minor, minor_named
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig
from gpushare_localcluster.scheduler import add_scheduler
from gpushare_localcluster.waiting import wait_until

PATH = "GPUSHARE_UPGRADE"
"""The environment variable that names the minors to go through, oldest first: ``1.34 1.35 1.36 1.37``."""
WORKERS = ("gpu-1", "gpu-2")
LAGGING = WORKERS[-1]
"""Its kubelet goes from the first minor to the last at once: kubelets may be three minors older."""
CARD_UNITS = 16
UNITS = 2


def upgrade_path(environment: Mapping[str, str] = os.environ) -> Sequence[Minor]:
    """Returns what PATH names. Skips the test where it names nothing: each minor takes minutes to build."""
    names = environment.get(PATH, "").split()
    if not names:
        pytest.skip(f"make matrix goes from each Kubernetes to the next, and so does {PATH}='1.36 1.37'")
    return tuple(map(minor_named, names))


@dataclass
class KubernetesUpgrade:
    """The cluster, what runs in it, and how far it has come: ``present`` is the control plane's minor."""

    product: Product
    namespace: str
    path: Sequence[Minor]
    present: Minor
    before: dict[str, object] = field(default_factory=dict)
    """What the pods of the test have."""

    @property
    def cluster(self) -> LocalCluster:
        return self.product.cluster

    @property
    def manifest(self) -> Path:
        return self.cluster.node_path(CONTROL_PLANE, MANIFEST)

    # Kubernetes

    def upgrade_control_plane(self, minor: Minor) -> bytes:
        """Returns kube-scheduler's manifest as `kubeadm upgrade apply` writes it."""
        add_scheduler(self.cluster, VERSION, minor=minor)
        self.cluster.upgrade_control_plane(minor)
        self.present = minor
        written = self.manifest.read_bytes()
        assert minor.version.encode() in written
        return written

    def upgrade_kubelets(self, minor: Minor) -> None:
        """One by one; the last one stays behind as long as it may."""
        for name in (CONTROL_PLANE, *WORKERS):
            if name != LAGGING or minor == self.path[-1]:
                self._upgrade_kubelet(name, minor)

    def _upgrade_kubelet(self, name: str, minor: Minor) -> None:
        units = self._allocatable(name)
        self.cluster.upgrade_kubelet(name, minor)
        watch_until(
            self.cluster,
            NODES,
            lambda nodes: any(
                named(node, name)
                and node["status"]["nodeInfo"]["kubeletVersion"] == minor.version
                and is_true(node, "Ready")
                and node["status"]["allocatable"].get(MEMORY) == units
                for node in nodes
            ),
            what=f"the kubelet {minor.version} of {name} has {units} {MEMORY}",
            describe=lambda nodes: [node["status"] for node in nodes if named(node, name)],
        )

    def _allocatable(self, name: str) -> str | None:
        units: str | None = get(self.cluster, f"{NODES}/{name}")["status"]["allocatable"].get(MEMORY)
        return units

    def await_kube_scheduler(self, *, is_ours: bool) -> None:
        """Wait until kube-scheduler of this minor serves with our part, or has started without.

        The operator may repair the manifest before a kube-scheduler without our part serves.
        """

        def fits(each: Json) -> bool:
            (container,) = each["spec"]["containers"]
            ours = any("/etc/kubernetes/gpushare/" in word for word in container["command"])
            is_new = container["image"].endswith(f":{self.present.version}")
            return is_new and ours == is_ours and (is_running(each) or not ours)

        watch_until(
            self.cluster,
            PODS.format(namespace="kube-system"),
            lambda pods: any(named(each, f"kube-scheduler-{CONTROL_PLANE}") and fits(each) for each in pods),
            what=f"kube-scheduler {self.present.version}, is_ours={is_ours}",
            describe=lambda pods: [(each["spec"]["containers"], each["status"]) for each in pods],
        )

    # Pods

    def run_pod(self, name: str, *, on: str | None = None) -> Json:
        """It gets a card, and nothing happens to the pods that run."""
        create(self.cluster, self.namespace, [pod(name, {"main": UNITS}, on=on)])
        pods = watch_until(
            self.cluster,
            PODS.format(namespace=self.namespace),
            lambda pods: any(named(each, name) and is_running(each) for each in pods),
            what=f"pod {name} runs",
            describe=lambda pods: [each["status"] for each in pods],
        )
        self.check(new=name)
        return next(each for each in pods if named(each, name))

    def run_on_all(self, name: str) -> None:
        """One on each worker."""
        for worker in WORKERS:
            self.run_pod(f"{name}-{worker}", on=worker)

    def check(self, *, new: str = "") -> None:
        """The pods have their nodes, cards and containers as before, and the books agree."""
        await_agreement(self.cluster, self.namespace)
        wait_until(
            "the auditor finds nothing",
            lambda: not differences(read_cluster(self.cluster)),
            interval=0.5,
            explain=lambda: "; ".join(map(str, differences(read_cluster(self.cluster)))),
        )
        now = holdings(self.cluster, self.namespace)
        assert {name: held for name, held in now.items() if name != new} == self.before
        self.before = dict(now)

    def check_placed_by_cards(self) -> None:
        """A pod that fits a node, and no card of it, waits: kube-scheduler asks the extender."""
        create(self.cluster, self.namespace, [pod("too-large", {"main": CARD_UNITS + 1})])
        watch_until(
            self.cluster,
            PODS.format(namespace=self.namespace),
            lambda pods: any("in one card" in why_waiting(each) for each in pods if named(each, "too-large")),
            what="the extender refuses too-large",
            describe=lambda pods: [each["status"] for each in pods if named(each, "too-large")],
        )
        self.cluster.kubectl("delete", "pod", "-n", self.namespace, "too-large")

    def check_bound_once(self) -> None:
        """No pod has two Events of a bind."""
        events = get(self.cluster, f"/api/v1/namespaces/{self.namespace}/events")["items"]
        bound = [event["involvedObject"]["name"] for event in events if event["reason"] == "Scheduled"]
        assert len(bound) == len({*bound})


def why_waiting(each: Json) -> str:
    conditions = each["status"].get("conditions", ())
    said = (item.get("message", "") for item in conditions if item["type"] == "PodScheduled")
    return str(next(said, ""))


@contextmanager
def upgraded(folder: Path, path: Sequence[Minor], flags: Sequence[str] = ()) -> Iterator[KubernetesUpgrade]:
    """The product on a cluster of the first minor of ``path``. ``flags``: of the API server."""
    size = ClusterConfig.of_size(workers=len(WORKERS))
    config = replace(size, kubernetes=path[0], component_flags={"kube-apiserver": flags})
    with LocalCluster(folder) as running:
        running.start(config)
        running.wait_ready()
        product = Product(running)
        product.install()
        create_namespace(running, "test-upgrade")  # the cluster ends with the test
        yield KubernetesUpgrade(product, "test-upgrade", path, present=path[0])
