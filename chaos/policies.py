"""The policies at the beginning: every class is served somewhere, and so is a dialect."""

from collections.abc import Sequence

from gpushare_core.text.json_object import Json

CARDS = 4
MEMORY = "16Gi"


def policy(name: str, rules: Sequence[Json], **spec: object) -> Json:
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": name},
        "spec": {
            "memoryUnit": "1Gi",
            "nodes": list(rules),
            "plugin": {"logFolder": "/var/log/gpushare"},
            **spec,
        },
    }


def rule(node: str, mode: str, *, cards: int = CARDS, **more: object) -> Json:
    """A node by its name, with simulated cards."""
    devices = {"source": "Simulated", "simulated": [{"count": cards, "memory": MEMORY}]}
    return {"names": [node], "mode": mode, "devices": devices, **more}


DEFAULT = policy("default", [rule("gpu-1", "Memory"), rule("gpu-2", "Mixed", slicesPerCard=2)])
DIALECT = policy("dialect", [rule("gpu-3", "Mixed", slicesPerCard=4)], dialect="aliyun.com")

POLICIES = (DEFAULT, DIALECT)
