"""The PodMonitor finds what serves metrics, the NetworkPolicy lets in who asks, and all of it is there."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.samples.operator import INSTALLATION, policy

from gpushare_core.api.enums import Engine
from gpushare_core.api.names import EXTENDER_PORT, NAMESPACE
from gpushare_operator.backends.dedicated.deployment import scheduler_deployment
from gpushare_operator.backends.extender_workload.daemon_set import extender_daemon_set
from gpushare_operator.desired.plugin_daemon_set import PLUGIN_HEALTH_PORT, plugin_daemon_set
from gpushare_operator.main import HEALTH_PORT
from gpushare_operator.policies.scheduler_settings import SchedulerSettings

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "config" / "monitoring"
NETWORK_POLICY = ROOT / "manifests" / "network-policy.yaml"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def operator_deployment() -> Any:
    bodies = yaml.safe_load_all((ROOT / "manifests" / "operator.yaml").read_text())
    return next(body for body in bodies if body["kind"] == "Deployment")


def is_selected(labels: dict[str, str]) -> bool:
    expressions = read(MONITORING / "podmonitors.yaml")["spec"]["selector"]["matchExpressions"]
    return all(labels.get(expression["key"]) in expression["values"] for expression in expressions)


SERVING = [
    pytest.param(operator_deployment(), HEALTH_PORT, id="operator"),
    pytest.param(plugin_daemon_set(policy(), INSTALLATION), PLUGIN_HEALTH_PORT, id="plugin"),
    pytest.param(
        scheduler_deployment(INSTALLATION, SchedulerSettings(), "v1.36.3"),
        EXTENDER_PORT + 1,
        id="extender beside our own kube-scheduler",
    ),
]
"""What has pods with an address of their own, and the health port there."""


@pytest.mark.parametrize(("owner", "port"), SERVING)
def test_the_pod_monitor_finds_the_health_port(owner: Any, port: int) -> None:
    (asked,) = read(MONITORING / "podmonitors.yaml")["spec"]["podMetricsEndpoints"]
    template = owner["spec"]["template"]
    ports = [rule for container in template["spec"]["containers"] for rule in container.get("ports", ())]
    assert is_selected(template["metadata"]["labels"])
    assert [(rule["name"], rule["containerPort"]) for rule in ports] == [(asked["port"], port)]


@pytest.mark.parametrize(("owner", "port"), SERVING)
def test_the_network_policy_lets_in_whom_the_pod_monitor_sends_and_nobody_else(owner: Any, port: int) -> None:
    spec = read(NETWORK_POLICY)["spec"]
    template = owner["spec"]["template"]
    (rule,) = spec["ingress"]
    ports = {rule_["name"]: rule_ for rule_ in template["spec"]["containers"][-1]["ports"]}
    named = [rule_ for rule_ in rule["ports"] if rule_["port"] in ports]
    assert spec["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert spec["policyTypes"] == ["Ingress"], "whom they may call is said elsewhere"
    assert [(ports[rule_["port"]]["containerPort"], rule_["protocol"]) for rule_ in named] == [(port, "TCP")]


@pytest.mark.parametrize("engine", [*Engine])
def test_kube_scheduler_is_asked_on_its_secure_port_and_may_be(engine: Engine) -> None:
    template = scheduler_deployment(INSTALLATION, SchedulerSettings(engine=engine), "v1.36.3")["spec"][
        "template"
    ]
    (rule,) = read(NETWORK_POLICY)["spec"]["ingress"]
    service, monitor = metrics_objects("gpushare-scheduler")
    (port,), (endpoint,) = service["spec"]["ports"], monitor["spec"]["endpoints"]
    assert f"--secure-port={port['port']}" in template["spec"]["containers"][0]["args"]
    assert {"port": port["port"], "protocol": "TCP"} in rule["ports"]
    assert endpoint["port"] == port["name"]
    assert endpoint["scheme"] == "https"
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (of_prometheus,) = (
        job
        for job in read(MONITORING / "prometheus.yaml")["scrape_configs"]
        if job["job_name"] == "gpushare-scheduler"
    )
    targets = [rule for rule in of_prometheus["relabel_configs"] if rule.get("target_label") == "__address__"]
    assert [rule["replacement"] for rule in targets] == [f"$1:{port['port']}"]
    kept = [*endpoint["metricRelabelings"], *of_prometheus["metric_relabel_configs"]]
    assert {rule["regex"] for rule in kept} == {"(gpushare|process|scheduler)_.+"}


def metrics_objects(name: str) -> tuple[Any, Any]:
    """Returns the Service and the ServiceMonitor of a program."""
    bodies = yaml.safe_load_all((MONITORING / "servicemonitor.yaml").read_text())
    by_name = {(body["kind"], body["metadata"]["name"]): body for body in bodies}
    return by_name["Service", f"{name}-metrics"], by_name["ServiceMonitor", name]


def test_the_network_policy_names_who_may_come_by_a_label_that_the_documents_name() -> None:
    body = read(NETWORK_POLICY)
    ((rule,), (source,)) = (body["spec"]["ingress"], body["spec"]["ingress"][0]["from"])
    ((key, value),) = source["namespaceSelector"]["matchLabels"].items()
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {key: value}}}], (
        "who makes pods cannot set it"
    )
    assert f"kubectl label namespace monitoring {key}={value}" in (ROOT / "docs/monitoring.md").read_text()
    assert body["metadata"]["namespace"] == NAMESPACE, "an overlay's namespace: takes it along"


def test_no_other_network_policy_lets_anybody_in() -> None:
    """They add up."""
    others = yaml.safe_load_all((ROOT / "config/network-policy/network-policies.yaml").read_text())
    assert {tuple(other["spec"]["policyTypes"]) for other in others} == {("Egress",)}


def test_the_extender_is_not_asked_where_it_does_not_listen() -> None:
    template = extender_daemon_set(INSTALLATION, [22766])["spec"]["template"]
    assert not is_selected(template["metadata"]["labels"])


def test_what_is_applied_together_is_there() -> None:
    body = read(MONITORING / "kustomization.yaml")
    files = [*body["resources"], *(name for rule in body["configMapGenerator"] for name in rule["files"])]
    present = {path.name for path in MONITORING.iterdir()} - {"kustomization.yaml", "prometheus.yaml"}
    assert set(files) == present
    assert body["namespace"] == NAMESPACE
