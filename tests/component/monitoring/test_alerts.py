"""Each alert fires on the figures of its trouble, and on none of those beside it: by Prometheus' promtool.

That these figures are what the programs show is tested in tests/unit/monitoring, and a real Prometheus reads
them from the real programs in tests/e2e/test_monitoring.py.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.cluster import to_stderr

ROOT = Path(__file__).parents[3]
RULES = yaml.safe_load((ROOT / "config" / "monitoring" / "rules.yaml").read_text())["spec"]
ALERTS = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]
MINUTES = 40
STAYS = f"x{MINUTES}"
"""In promtool's notation: the same value every minute."""

Series = dict[str, str]


@dataclass(frozen=True)
class Case:
    """Series with their values: of the trouble, and of the nearest that is none."""

    alert: str
    firing: Series
    quiet: Series
    alerts: int = 1


def stays(value: float, *series: str) -> Series:
    return dict.fromkeys(series, f"{value:g}{STAYS}")


def condition(type_: str, value: int) -> Series:
    return stays(value, f'gpushare_policy_condition{{policy="default",type="{type_}"}}')


def node_condition(type_: str, value: int) -> Series:
    return stays(value, f'gpushare_node_condition{{node="gpu-1",type="{type_}"}}')


def grows(series: str, step: str) -> Series:
    return {series: f"0+{step}x{MINUTES}"}


def latency(seconds: str) -> Series:
    """All calls of the filter take at most so long."""
    name = "gpushare_extender_request_duration_seconds_bucket"
    bounds = ("0.25", "0.5", "1", "+Inf")
    counts = {bound: "10" if float(bound) >= float(seconds) else "0" for bound in bounds}
    return {
        key: value
        for bound, step in counts.items()
        for key, value in grows(f'{name}{{verb="filter",le="{bound}"}}', step).items()
    }


def target(component: str, value: int) -> Series:
    labels = f'app_kubernetes_io_component="{component}",pod="p",namespace="gpushare-system"'
    return stays(value, f"up{{{labels}}}")


def cards(number: int) -> Series:
    return stays(0, 'gpushare_cards{node="gpu-1",health="Unhealthy"}') | stays(
        number, 'gpushare_cards{node="gpu-1",health="Healthy"}'
    )


SHARED = stays(2, 'gpushare_policy_nodes{policy="default",state="ready"}') | stays(
    0, 'gpushare_policy_nodes{policy="default",state="not_ready"}'
)
ONE_PLUGIN = stays(1, 'gpushare_plugin_registered{node="gpu-1"}')
TWO_PLUGINS = ONE_PLUGIN | stays(1, 'gpushare_plugin_registered{node="gpu-2"}')
USED = 'gpushare_container_memory_used_bytes{node="n",card="c",namespace="s",pod="p",container="m"}'
REQUESTED = USED.replace("_used_", "_requested_")
IN_FORCE = USED.replace("container_memory_used_bytes", "isolation_in_force")
NEEDED = stays(1, 'gpushare_policy_backend{policy="default",backend="KubeScheduler"}')
VOLCANO = stays(1, 'gpushare_policy_backend{policy="default",backend="Volcano"}')
OF_ITS_HOST = stays(1, 'gpushare_policy_backend{policy="default",backend="KubeScheduler",engine="Plugin"}')
"""Its metrics are on an address that Prometheus seldom reaches."""
SCHEDULER = stays(1, 'gpushare_build_info{program="gpushare-scheduler",version="0.1.0"}')
EXTENDER = stays(1, 'gpushare_build_info{program="gpushare-extender",version="0.1.0"}')
REFUSALS = 'gpushare_plugin_kubelet_refusals_total{pod="p",verb="Allocate",reason="NothingFits"}'
BINDS = 'gpushare_extender_binds_total{result="Error"}'
WAIT = 'gpushare_extender_longest_wait_seconds{reason="NoRoom"}'

CASES = [
    Case("GPUSharePolicyNotReady", condition("Ready", 0), condition("Ready", 1)),
    Case("GPUSharePolicyDegraded", condition("Degraded", 1), condition("Degraded", 0)),
    Case("GPUShareBooksDisagree", condition("BooksAgree", 0), condition("BooksAgree", 1)),
    Case(
        "GPUShareNodesNotReady",
        stays(1, 'gpushare_policy_nodes{policy="default",state="not_ready"}'),
        SHARED,
    ),
    Case(
        "GPUShareCardUnhealthy",
        stays(0, 'gpushare_card_healthy{node="gpu-1",card="GPU-0"}'),
        stays(1, 'gpushare_card_healthy{node="gpu-1",card="GPU-0"}'),
    ),
    Case(
        "GPUShareMemoryExceeded", stays(9, USED) | stays(8, REQUESTED), stays(8, USED) | stays(8, REQUESTED)
    ),
    Case("GPUSharePluginNotRegistered", node_condition("Registered", 0), node_condition("Registered", 1)),
    Case(
        "GPUShareIsolationNotReady", node_condition("IsolationReady", 0), node_condition("IsolationReady", 1)
    ),
    Case("GPUShareIsolationNotInForce", stays(0, IN_FORCE), stays(1, IN_FORCE)),
    Case("GPUShareBooksDiffer", node_condition("LedgerInSync", 0), node_condition("LedgerInSync", 1)),
    Case(
        "GPUShareBooksStale",
        stays(61, 'gpushare_plugin_books_age_seconds{node="gpu-1"}'),
        stays(5, 'gpushare_plugin_books_age_seconds{node="gpu-1"}'),
    ),
    Case("GPUShareKubeletRefused", grows(REFUSALS, "1"), stays(7, REFUSALS)),
    Case("GPUShareExtenderSlow", latency("1"), latency("0.25")),
    Case("GPUShareBindDefect", grows(BINDS, "1"), stays(3, BINDS)),
    Case(
        "GPUShareWatchSilent",
        stays(121, 'gpushare_watch_silence_seconds{collection="pods"}'),
        stays(60, 'gpushare_watch_silence_seconds{collection="pods"}'),
    ),
    Case(
        "GPUShareReservationsAbandoned",
        stays(1, 'gpushare_extender_reservations{state="abandoned"}'),
        stays(1, 'gpushare_extender_reservations{state="under_way"}'),
    ),
    Case(
        "GPUShareOperatorFailing",
        stays(1, "gpushare_operator_queue_failing_keys"),
        stays(0, "gpushare_operator_queue_failing_keys"),
    ),
    Case(
        "GPUShareOperatorAbsent",
        stays(0, 'gpushare_operator_at_work{pod="a"}'),
        stays(0, 'gpushare_operator_at_work{pod="a"}') | stays(1, 'gpushare_operator_at_work{pod="b"}'),
    ),
    Case("GPUSharePluginDown", target("plugin", 0), target("plugin", 1)),
    Case("GPUSharePluginsMissing", SHARED | ONE_PLUGIN, SHARED | TWO_PLUGINS),
    Case("GPUSharePluginsMissing", SHARED, {}),
    Case("GPUShareNodeWithoutCards", cards(0), cards(1)),
    Case("GPUSharePodsWait", grows(WAIT, "60"), stays(300, WAIT)),
    Case("GPUShareExtenderDown", target("extender", 0), target("extender", 1)),
    Case("GPUShareExtenderAbsent", NEEDED, NEEDED | EXTENDER),
    Case("GPUShareExtenderAbsent", NEEDED, NEEDED | SCHEDULER),
    Case("GPUShareExtenderAbsent", NEEDED, VOLCANO),
    Case("GPUShareExtenderAbsent", NEEDED, OF_ITS_HOST),
]


@pytest.fixture(scope="module")
def promtool() -> Path:
    return ensure_packages(("prometheus",), report=to_stderr) / "usr/bin/promtool"


def expectation(case: Case, series: Series, alerts: int) -> dict[str, Any]:
    firing = f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}})'
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": firing,
                "eval_time": f"{MINUTES - 1}m",
                "exp_samples": [{"labels": "{}", "value": alerts}] if alerts else [],
            }
        ],
    }


def test_every_alert_fires_on_its_trouble_and_on_nothing_else(promtool: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    tests = [
        expected
        for case in CASES
        for expected in (expectation(case, case.firing, case.alerts), expectation(case, case.quiet, 0))
    ]
    body = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(body, sort_keys=False))
    done = subprocess.run(
        [promtool, "test", "rules", tmp_path / "tests.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_alert_is_left_out() -> None:
    assert {case.alert for case in CASES} == set(ALERTS)


def test_the_configuration_of_a_prometheus_without_its_operator_is_one(
    promtool: Path, tmp_path: Path
) -> None:
    """Debian's is built without Kubernetes: targets are named in place of looked for."""
    body = yaml.safe_load((ROOT / "config" / "monitoring" / "prometheus.yaml").read_text())
    for job in body["scrape_configs"]:
        assert job.pop("kubernetes_sd_configs") == [
            {"role": "pod", "namespaces": {"names": ["gpushare-system"]}}
        ]
        job["static_configs"] = [{"targets": ["127.0.0.1:9650"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(body))
    command = [str(promtool), "check", "config", "--syntax-only", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
