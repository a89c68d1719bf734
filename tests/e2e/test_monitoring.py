"""A real Prometheus reads the real programs, and alerts fire when what they are about happens."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from tests.e2e.observe import PODS, Json, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import ROOT, SYSTEM, Product, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import SIMULATE_ANNOTATION
from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.cluster import LocalCluster, to_stderr
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

MONITORING = ROOT / "config" / "monitoring"
LISTEN = "127.0.0.1:9090"
READ = (
    "import sys, urllib.request as u, ssl\n"
    "r = u.Request(sys.argv[1], headers=dict([sys.argv[2].split(': ', 1)] if sys.argv[2:] else []))\n"
    "try:\n    a = u.urlopen(r, timeout=60, context=ssl._create_unverified_context())\n"
    "    print(a.status); print(a.read().decode())\n"
    "except u.HTTPError as e:\n    print(e.code)\n"
)


@pytest.fixture(scope="module", autouse=True)
def in_force(product: Product) -> Iterator[None]:
    body = policy("default", nodes=["gpu-1"], cards=2)
    body["spec"]["nodes"][0]["devices"]["health"] = {"quietSeconds": 3}
    with product.in_force(body):
        yield


@pytest.fixture(scope="module")
def token(cluster: LocalCluster) -> Iterator[str]:
    """Of an account that may read metrics, by the role in config/monitoring, and do nothing else."""
    cluster.kubectl("apply", "-f", str(MONITORING / "rbac.yaml"))
    cluster.kubectl("create", "serviceaccount", "prometheus", "-n", "default")
    binding = ("clusterrolebinding", "gpushare-metrics")
    cluster.kubectl(
        "create", *binding, "--clusterrole=gpushare-metrics", "--serviceaccount=default:prometheus"
    )
    yield cluster.kubectl("create", "token", "prometheus", "-n", "default").strip()
    cluster.kubectl("delete", *binding)
    cluster.kubectl("delete", "serviceaccount", "prometheus", "-n", "default")
    cluster.kubectl("delete", "-f", str(MONITORING / "rbac.yaml"))


def read(cluster: LocalCluster, url: str, *header: str) -> tuple[int, str]:
    """Returns status and content, as whoever is in the control plane's network gets them."""
    command = cluster.control_plane_command([sys.executable, "-c", READ, url, *header])
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    status, _, content = done.stdout.partition("\n")
    return int(status), content


def our_pods(cluster: LocalCluster) -> list[Json]:
    pods: list[Json] = get(cluster, PODS.format(namespace=SYSTEM))["items"]
    return [pod for pod in pods if pod["metadata"]["labels"].get("app.kubernetes.io/name") == "gpushare"]


def extender_url(cluster: LocalCluster) -> str:
    component = "app.kubernetes.io/component"
    (found,) = [pod for pod in our_pods(cluster) if pod["metadata"]["labels"][component] == "extender"]
    port = found["metadata"]["annotations"]["gpushare.io/metrics-port"]
    return f"https://{found['status']['hostIP']}:{port}/metrics"


def discovered(body: Json) -> list[Json]:
    """Returns a pod's targets as Prometheus finds them in a cluster; Debian's is built without that.

    It leaves out a pod that no kubelet has given an address, such as one on a node that is gone.
    """
    metadata, status = body["metadata"], body["status"]
    if "podIP" not in status:
        return []
    words = {"label": metadata["labels"], "annotation": metadata.get("annotations", {})}
    meta = {
        f"__meta_kubernetes_pod_{kind}_{''.join(sign if sign.isalnum() else '_' for sign in key)}": value
        for kind, pairs in words.items()
        for key, value in pairs.items()
    }
    meta |= {
        "__meta_kubernetes_namespace": metadata["namespace"],
        "__meta_kubernetes_pod_name": metadata["name"],
        "__meta_kubernetes_pod_host_ip": status["hostIP"],
    }
    ports = [port for container in body["spec"]["containers"] for port in container.get("ports", ())]
    named = [
        (
            f"{status['podIP']}:{port['containerPort']}",
            {"__meta_kubernetes_pod_container_port_name": port["name"]},
        )
        for port in ports
    ]
    return [{"targets": [at], "labels": {**meta, **label}} for at, label in named or [(status["podIP"], {})]]


def configuration(cluster: LocalCluster, folder: Path, token: str) -> Path:
    """Writes config/monitoring/prometheus.yaml with these pods, and rules that fire within seconds."""
    targets = [target for pod in our_pods(cluster) for target in discovered(pod)]
    body: Any = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    (folder / "token").write_text(token)
    for job in body["scrape_configs"]:
        del job["kubernetes_sd_configs"]
        job["static_configs"] = targets
        if "authorization" in job:
            job["authorization"]["credentials_file"] = str(folder / "token")
    rules: Any = yaml.safe_load((MONITORING / "rules.yaml").read_text())["spec"]
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        rule["for"] = "1s"
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    body["global"] = {"scrape_interval": "5s", "scrape_timeout": "5s", "evaluation_interval": "1s"}
    body["rule_files"] = [str(folder / "rules.yaml")]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(body))
    return folder / "prometheus.yml"


@dataclass(frozen=True)
class Prometheus:
    cluster: LocalCluster

    def query(self, expression: str) -> list[dict[str, str]]:
        """Returns the labels of each series, with its value as ``value``."""
        _, content = read(self.cluster, f"http://{LISTEN}/api/v1/query?query={quote(expression)}")
        return [
            {**sample["metric"], "value": sample["value"][1]}
            for sample in json.loads(content)["data"]["result"]
        ]

    def firing(self) -> set[str]:
        return {alert["alertname"] for alert in self.query('ALERTS{alertstate="firing"}')}

    def await_firing(self, alert: str) -> None:
        wait_until(f"{alert} fires", lambda: alert in self.firing(), explain=lambda: str(self.firing()))

    def await_silent(self, alert: str) -> None:
        """A late scrape is enough for an alert: the rules here wait a second, and not minutes."""
        wait_until(
            f"{alert} does not fire",
            lambda: alert not in self.firing(),
            explain=lambda: str(self.firing()),
        )


@pytest.fixture(scope="module")
def prometheus(
    cluster: LocalCluster, token: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    program = ensure_packages(("prometheus",), report=to_stderr) / "usr/bin/prometheus"
    options = [f"--config.file={configuration(cluster, folder, token)}", f"--storage.tsdb.path={folder}/data"]
    command = cluster.control_plane_command([str(program), *options, f"--web.listen-address={LISTEN}"])
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            seen = Prometheus(cluster)
            wait_until("it answers", lambda: answers(seen))
            yield seen
        finally:
            running.send_signal(signal.SIGTERM)


def answers(prometheus: Prometheus) -> bool:
    try:
        return bool(prometheus.query("up"))
    except (subprocess.SubprocessError, ValueError):
        return False


def test_it_reads_every_program(prometheus: Prometheus) -> None:
    def programs() -> set[str]:
        return {sample["program"] for sample in prometheus.query("gpushare_build_info")}

    wanted = {"gpushare-operator", "gpushare-plugin", "gpushare-extender"}
    wait_until("all programs are read", lambda: programs() == wanted, explain=lambda: str(programs()))
    wait_until(
        "every target answers",
        lambda: {sample["value"] for sample in prometheus.query("up")} == {"1"},
        explain=lambda: str(prometheus.query("up")),
    )


def test_the_extender_answers_only_who_may_read_metrics(cluster: LocalCluster, token: str) -> None:
    url = extender_url(cluster)
    stranger = cluster.kubectl("create", "token", "default", "-n", "default").strip()
    assert read(cluster, url)[0] == 401
    assert read(cluster, url, "Authorization: Bearer made-up")[0] == 401
    assert read(cluster, url, f"Authorization: Bearer {stranger}")[0] == 403
    status, content = read(cluster, url, f"Authorization: Bearer {token}")
    assert (status, "gpushare_extender_nodes" in content) == (200, True)
    for other in ("/healthz", "/gpushare/inspect"):
        assert read(cluster, url.replace("/metrics", other), f"Authorization: Bearer {token}")[0] == 404


def test_units_are_told_by_namespace(cluster: LocalCluster, namespace: str, prometheus: Prometheus) -> None:
    create(cluster, namespace, [pod("holder", {"main": 3}, on="gpu-1")])
    watch_until(
        cluster, PODS.format(namespace=namespace), lambda pods: any(map(is_running, pods)), what="it runs"
    )
    asked = f'sum(gpushare_namespace_units{{namespace="{namespace}"}})'
    wait_until(
        "its three units are told",
        lambda: [sample["value"] for sample in prometheus.query(asked)] == ["3"],
        explain=lambda: str(prometheus.query("gpushare_namespace_units")),
    )


@contextmanager
def sick_card(cluster: LocalCluster) -> Iterator[None]:
    cluster.kubectl("annotate", "gpusharenode", "gpu-1", f"{SIMULATE_ANNOTATION}=xid=0:79 repair=0")
    try:
        yield
    finally:
        cluster.kubectl("annotate", "gpusharenode", "gpu-1", f"{SIMULATE_ANNOTATION}-")


@contextmanager
def paused_plugin(cluster: LocalCluster) -> Iterator[None]:
    component = "app.kubernetes.io/component"
    plugins = [pod for pod in our_pods(cluster) if pod["metadata"]["labels"][component] == "plugin"]
    (found,) = [plugin for plugin in plugins if plugin["spec"]["nodeName"] == "gpu-1"]
    name = found["metadata"]["name"]
    cluster.kill_container(namespace=SYSTEM, pod=name, container="plugin", signal=signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.kill_container(namespace=SYSTEM, pod=name, container="plugin", signal=signal.SIGCONT)


def test_a_plugin_that_does_not_answer(cluster: LocalCluster, prometheus: Prometheus) -> None:
    prometheus.await_silent("GPUSharePluginDown")
    with paused_plugin(cluster):
        prometheus.await_firing("GPUSharePluginDown")


def test_a_sick_card(cluster: LocalCluster, prometheus: Prometheus) -> None:
    prometheus.await_silent("GPUShareCardUnhealthy")
    with sick_card(cluster):
        prometheus.await_firing("GPUShareCardUnhealthy")


def test_an_operator_that_is_gone(cluster: LocalCluster, prometheus: Prometheus) -> None:
    """Its pod is a new one afterwards, which the targets of this test do not name: so this is the last."""
    prometheus.await_silent("GPUShareOperatorAbsent")
    scale = ("scale", "deployment/gpushare-operator", "-n", SYSTEM)
    cluster.kubectl(*scale, "--replicas=0")
    try:
        prometheus.await_firing("GPUShareOperatorAbsent")
    finally:
        cluster.kubectl(*scale, "--replicas=1")
        cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s")
