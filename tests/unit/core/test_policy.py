"""The models of the API: tolerant readers, exact writers."""

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from gpushare_core.api.enums import Engine, Mode, Source
from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.api.timestamps import rfc3339


def test_the_least_policy_gets_all_defaults() -> None:
    spec = PolicySpec.model_validate({"nodes": [{"names": ["gpu-1"]}]})
    assert spec.memory_unit == "1Gi"
    assert spec.nodes[0].mode is Mode.MEMORY
    assert spec.nodes[0].devices.source is Source.NVML
    assert spec.nodes[0].reserved_memory == "0"


def test_fields_of_a_newer_version_are_ignored() -> None:
    spec = PolicySpec.model_validate({"nodes": [{"names": ["a"], "colour": "red"}], "future": {}})
    assert "future" not in spec.to_json()


@pytest.mark.parametrize(
    ("scheduler", "engine"),
    [
        pytest.param({}, Engine.EXTENDER, id="nothing said"),
        pytest.param({"backend": "KubeScheduler", "engine": "Plugin"}, Engine.PLUGIN, id="chosen"),
        pytest.param({"backend": "Dedicated"}, Engine.PLUGIN, id="dedicated"),
        pytest.param({"backend": "Dedicated", "engine": "Extender"}, Engine.EXTENDER, id="dedicated, chosen"),
        pytest.param({"backend": "External"}, Engine.EXTENDER, id="external"),
        pytest.param({"backend": "Volcano"}, Engine.EXTENDER, id="volcano"),
    ],
)
def test_the_engine_follows_from_the_backend_unless_a_policy_names_it(
    scheduler: dict[str, str], engine: Engine
) -> None:
    spec = PolicySpec.model_validate({"nodes": [{"names": ["gpu-1"]}], "scheduler": scheduler})
    assert spec.scheduler.desired_engine is engine


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="no nodes"),
        pytest.param({"nodes": []}, id="empty nodes"),
        pytest.param({"nodes": [{"mode": "Half"}]}, id="unknown mode"),
        pytest.param({"nodes": [{"reservedMemory": "much"}]}, id="no quantity"),
        pytest.param({"nodes": [{"devices": {"simulated": [{"count": 0, "memory": "1Gi"}]}}]}, id="no card"),
        pytest.param({"nodes": [{"slicesPerCard": 65}]}, id="too many slices"),
        pytest.param({"nodes": [{"names": [""]}]}, id="empty name"),
        pytest.param({"nodes": [{"names": ["a"]}], "scheduler": {"engine": "Webhook"}}, id="unknown engine"),
    ],
)
def test_what_the_schema_refuses_does_not_parse(spec: Any) -> None:
    with pytest.raises(ValidationError):
        PolicySpec.model_validate(spec)


def test_a_policy_is_written_as_it_was_read() -> None:
    body = {
        "memoryUnit": "256Mi",
        "nodes": [
            {
                "names": ["gpu-1"],
                "mode": "Slices",
                "slicesPerCard": 2,
                "reservedMemory": "512Mi",
                "devices": {
                    "source": "NVML",
                    "simulated": [],
                    "inventoryPath": "/x",
                    "injection": "CDI",
                    "cdiKind": "example.com/gpu",
                    "health": {"ignoredXids": [13], "quietSeconds": 60},
                },
                "isolation": {
                    "memory": "Hook",
                    "contextMemory": "500Mi",
                    "onExcess": "Evict",
                    "graceSeconds": 30,
                },
            }
        ],
        "unitChange": "Keep",
        "dialect": "aliyun.com",
        "admission": {"visibleDevices": "Deny", "isolationBypass": "Deny"},
        "startupTaint": "Remove",
        "placement": {"strategy": "Spread", "preemption": "Disabled", "candidates": 0, "weight": 7},
        "scheduler": {"backend": "External", "extenderPort": 12345, "timeoutSeconds": 60},
        "plugin": {
            "logLevel": "debug",
            "logFolder": "/var/log/gpushare",
            "runtimeClassName": "nvidia",
            "measurement": {"scope": "Containers", "intervalSeconds": 60},
        },
        "extender": {"logLevel": "warning", "logFolder": "/var/log/gpushare"},
        "operator": {"logLevel": "error"},
    }
    assert PolicySpec.model_validate(body).to_json() == body


def test_a_node_gets_what_its_rule_and_its_policy_say() -> None:
    spec = PolicySpec.model_validate(
        {
            "memoryUnit": "2Gi",
            "nodes": [{"names": ["a"], "reservedMemory": "1Gi"}],
            "placement": {"strategy": "Spread", "candidates": 0},
            "plugin": {"logLevel": "debug", "logFolder": "/var/log/gpushare"},
            "extender": {"logLevel": "warning"},
            "operator": {"logLevel": "error"},
        }
    )
    written = spec.of_node("default", spec.nodes[0]).to_json()
    assert written["policy"] == "default"
    assert (written["memoryUnit"], written["reservedMemory"]) == ("2Gi", "1Gi")
    assert (written["strategy"], written["logLevel"]) == ("Spread", "debug")
    assert (written["extenderLogLevel"], written["candidates"]) == ("warning", 0)


def test_what_nobody_asks_for_is_not_written_to_nodes() -> None:
    """An upgrade writes no GPUShareNode anew because of a field that it brings."""
    spec = PolicySpec.model_validate({"nodes": [{"names": ["a"]}]})
    written = spec.of_node("default", spec.nodes[0]).to_json()
    assert written.keys().isdisjoint({"extenderLogLevel", "candidates", "isolation"})


def test_a_share_node_without_status_is_read() -> None:
    spec = {"policy": "p", "mode": "Memory", "memoryUnit": "1Gi"}
    node = GPUShareNode.from_json({"metadata": {"name": "gpu-1"}, "spec": spec})
    assert node.status.cards == []


def test_times_are_written_in_utc_with_whole_seconds() -> None:
    assert rfc3339(datetime.fromisoformat("2026-11-21T13:00:00.987+01:00")) == "2026-11-21T12:00:00Z"
