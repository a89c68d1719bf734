"""From the last release to this version and back, program by program, while pods hold cards."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest
from tests.e2e.fixtures import await_agreement
from tests.e2e.holdings import holdings
from tests.e2e.observe import PODS, Json, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import MANIFESTS, SYSTEM, Product, named, policy
from tests.e2e.workloads import create, create_namespace, pod
from tests.releases.release import PACKAGES, last_release

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig, python_folders

pytestmark = pytest.mark.e2e

PROGRAMS = ("operator", "plugin", "extender", "hostctl")
OUR_PODS = PODS.format(namespace=SYSTEM)
UNITS = 3


class Version(Enum):
    RELEASED = "released"
    PRESENT = "present"


@dataclass(frozen=True)
class Versions:
    """Which version of each program a container gets that starts from now on: as if images were changed one
    by one."""

    programs: Path
    """In front of every container's PATH."""
    released: Path
    """The files of the last release."""

    def choose(self, program: str, version: Version) -> None:
        before, command = [], f"{sys.prefix}/bin/gpushare-{program}"
        if version is Version.RELEASED:
            before, command = [f"export PYTHONPATH={self._sources()}"], str(self._start(program))
        script = ["#!/bin/sh", *before, f'exec {command} "$@"', ""]
        path = self.programs / f"gpushare-{program}"
        path.with_suffix(".new").write_text("\n".join(script))
        path.with_suffix(".new").chmod(0o755)
        path.with_suffix(".new").rename(path)

    def _start(self, program: str) -> Path:
        """Returns what the release installed as the program: where it begins has changed since."""
        path = self.released / f"gpushare-{program}"
        begin = f"from gpushare_{program}.main import main"
        path.write_text(f"#!{sys.prefix}/bin/python3\n{begin}\n\nmain()\n")
        path.chmod(0o755)
        return path

    def manifests(self, version: Version) -> Path:
        """One operator at a time: which version is at work is read from its process."""
        return self.released / "manifests" if version is Version.RELEASED else MANIFESTS

    def _sources(self) -> str:
        return ":".join(str(self.released / package) for package in PACKAGES)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    """Everything as it was released."""
    folder = tmp_path_factory.mktemp("upgrade")
    made = Versions(folder / "programs", last_release().extract(folder / "released"))
    made.programs.mkdir()
    for program in PROGRAMS:
        made.choose(program, Version.RELEASED)
    return made


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory, versions: Versions) -> Iterator[LocalCluster]:
    """One in which containers find the programs of the version that is chosen for each."""
    size = ClusterConfig.of_size(workers=1)
    config = ClusterConfig(
        nodes=size.nodes,
        container_path=[versions.programs, *size.container_path],
        readable=[*python_folders(), versions.programs, versions.released],
    )
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as running:
        running.start(config)
        running.wait_ready()
        yield running


@dataclass(frozen=True)
class Upgrade:
    """The product while its parts change their versions under pods that run."""

    product: Product
    versions: Versions
    namespace: str

    @property
    def cluster(self) -> LocalCluster:
        return self.product.cluster

    def install(self, version: Version) -> None:
        """What an administrator does; of the programs only the operator is moved."""
        self.versions.choose("operator", version)
        self.cluster.kubectl("apply", "-k", str(self.versions.manifests(version)))
        self._await_operator()
        if self.running_version("operator") is not version:  # the Deployment is the same in both
            self.cluster.kubectl("rollout", "restart", "deployment/gpushare-operator", "-n", SYSTEM)
            self._await_operator()
        assert self.running_version("operator") is version

    def _await_operator(self) -> None:
        self.cluster.kubectl(
            "rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s"
        )

    def move(self, program: str, version: Version) -> None:
        """Its pods are replaced, as a DaemonSet does after its image was changed."""
        self.versions.choose(program, version)
        before = {pod["metadata"]["uid"] for pod in self.pods_of(program)}
        selector = f"app.kubernetes.io/component={program}"
        self.cluster.kubectl("delete", "pods", "-n", SYSTEM, "-l", selector)
        watch_until(
            self.cluster,
            OUR_PODS,
            lambda pods: any(
                is_running(pod) and pod["metadata"]["uid"] not in before
                for pod in pods
                if is_of(pod, program)
            ),
            what=f"the {version.value} {program} is ready",
            describe=lambda pods: [pod["status"] for pod in pods if is_of(pod, program)],
        )
        assert self.running_version(program) is version

    def pods_of(self, program: str) -> list[Json]:
        return [item for item in get(self.cluster, OUR_PODS)["items"] if is_of(item, program)]

    def running_version(self, program: str) -> Version:
        """Returns whose sources the running process has."""
        (running,) = [
            container
            for container in self.cluster.containers()
            if (container.namespace, container.container, container.state) == (SYSTEM, program, "running")
        ]
        environment = self.cluster.node_exec(running.node, ["cat", f"/proc/{running.pid}/environ"]).stdout
        return Version.RELEASED if "PYTHONPATH=" in environment else Version.PRESENT

    def run_pod(self, name: str) -> None:
        create(self.cluster, self.namespace, [pod(name, {"main": UNITS})])
        watch_until(
            self.cluster,
            PODS.format(namespace=self.namespace),
            lambda pods: any(named(pod, name) and is_running(pod) for pod in pods),
            what=f"pod {name} runs",
            describe=lambda pods: [pod["status"] for pod in pods],
        )

    def check(self, stage: str) -> None:
        """Nothing happened to the pods that run, a new one is served, and the policy is told of it all."""
        before = holdings(self.cluster, self.namespace)
        self.run_pod(stage)
        after = holdings(self.cluster, self.namespace)
        assert {name: after[name] for name in before} == before
        self.product.apply(asking(stage))
        self.product.await_ready("default")
        await_agreement(self.cluster, self.namespace)


def is_of(each: Json, program: str) -> bool:
    return bool(each["metadata"].get("labels", {}).get("app.kubernetes.io/component") == program)


def asking(stage: str) -> Json:
    """A policy with another generation at every stage: it is Ready when operator and plugin understand each
    other."""
    body = policy("default", nodes=["gpu-1"], cards=4)
    level = "debug" if STAGES.index(stage) % 2 else "info"
    return {**body, "spec": {**body["spec"], "plugin": {"logLevel": level}}}


STAGES = ("released", "operator", "plugin", "all", "operator-back", "all-back")


def test_pods_keep_their_cards_whichever_program_is_older(
    own_cluster: LocalCluster, versions: Versions
) -> None:
    create_namespace(own_cluster, "test-upgrade")  # the cluster ends with this test
    product = Product(own_cluster)
    upgrade = Upgrade(product, versions, "test-upgrade")
    upgrade.install(Version.RELEASED)
    product.apply(asking("released"))
    product.await_ready("default")
    upgrade.check("released")

    upgrade.install(Version.PRESENT)
    upgrade.check("operator")
    upgrade.move("plugin", Version.PRESENT)
    upgrade.check("plugin")
    versions.choose("hostctl", Version.PRESENT)
    upgrade.move("extender", Version.PRESENT)
    upgrade.check("all")

    upgrade.install(Version.RELEASED)
    upgrade.check("operator-back")
    versions.choose("hostctl", Version.RELEASED)
    upgrade.move("extender", Version.RELEASED)
    upgrade.move("plugin", Version.RELEASED)
    upgrade.check("all-back")
