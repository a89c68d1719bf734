"""Installing the product and its policies on the local cluster, by its own manifests only."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.observe import PATIENCE, POLICIES, SHARE_NODES, Json, is_true, watch_until

from gpushare_core.process.version import VERSION
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.scheduler import add_scheduler

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = "gpushare-system"
MANIFESTS = ROOT / "config" / "local-cluster"
"""With one operator: tests that end it wait for no Lease. test_operator_replicas.py has several."""


@dataclass(frozen=True, slots=True)
class Product:
    """The product as an administrator handles it."""

    cluster: LocalCluster

    def install(self) -> None:
        add_scheduler(self.cluster, VERSION)
        self.cluster.kubectl("apply", "-k", str(MANIFESTS))
        self.cluster.kubectl(
            "rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s"
        )

    def apply(self, policy: Json) -> None:
        self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(policy))

    def await_ready(self, policy: str, *, seconds: float = 240.0) -> Json:
        """Wait until the policy is Ready at its present generation, and return it."""

        def ready(policies: Any) -> bool:
            return any(named(present, policy) and is_ready(present) for present in policies)

        seen = watch_until(
            self.cluster,
            POLICIES,
            ready,
            what=f"policy {policy} Ready",
            seconds=seconds,
            describe=lambda policies: [policy.get("status") for policy in policies],
        )
        return next(present for present in seen if named(present, policy))

    @contextmanager
    def in_force(self, policy: Json) -> Iterator[None]:
        """The policy is Ready while entered. One that does not become so is taken back, too: the next module
        would meet it."""
        name = policy["metadata"]["name"]
        try:
            self.apply(policy)
            self.await_ready(name)
            yield
        finally:
            self.cluster.kubectl(
                "delete", "gpusharepolicy", name, "--ignore-not-found", "--timeout=240s", timeout=260
            )

    def delete(self, policy: str, *, seconds: float = 240.0) -> None:
        """Delete the policy and wait until everything was taken back."""
        self.cluster.kubectl(
            "delete", "gpusharepolicy", policy, f"--timeout={seconds:g}s", timeout=seconds + 20
        )

    def share_node(self, name: str, holds: Any, *, what: str, seconds: float = PATIENCE) -> Json:
        """Wait until ``holds`` is true of the GPUShareNode ``name``, and return it."""
        seen = watch_until(
            self.cluster,
            SHARE_NODES,
            lambda nodes: any(named(node, name) and holds(node) for node in nodes),
            what=what,
            seconds=seconds,
            describe=lambda nodes: [node.get("status") for node in nodes if named(node, name)],
        )
        return next(policy for policy in seen if named(policy, name))


def named(item: Json, name: str) -> bool:
    return bool(item["metadata"]["name"] == name)


def is_ready(policy: Json) -> bool:
    observed = policy.get("status", {}).get("observedGeneration")
    return is_true(policy, "Ready") and observed == policy["metadata"]["generation"]


def policy(
    name: str, *, nodes: list[str], unit: str = "1Gi", cards: int = 8, memory: str = "16Gi", **rule: Any
) -> Json:
    """A policy over ``nodes`` by name, with simulated cards."""
    devices = {"source": "Simulated", "simulated": [{"count": cards, "memory": memory}]}
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": name},
        "spec": {
            "memoryUnit": unit,
            "nodes": [{"names": nodes, "mode": "Memory", "devices": devices, **rule}],
        },
    }
