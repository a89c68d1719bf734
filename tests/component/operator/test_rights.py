"""The operator's roles allow exactly what it does in a life from the first policy to the last."""

import asyncio
from pathlib import Path
from typing import Any

import yaml
from tests.fakes.operator_cluster import NAMESPACE, Cluster, converge

from gpushare_core.kube import paths
from gpushare_operator.cluster.kinds import KINDS

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "rbac-operator.yaml"

VERBS = {"apply": ("create", "patch"), "merge": ("patch",), "create": ("create",), "delete": ("delete",)}
"""What the API server asks for: server-side apply may create."""

Right = tuple[str, str, str]
"""API group, resource with subresource, verb."""


def allowed() -> set[Right]:
    roles = [each for each in yaml.safe_load_all(MANIFEST.read_text()) if "rules" in each]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(write: str) -> set[Right]:
    """What one recorded write asks for."""
    verb, path = write.split(" ")
    group, resource = group_and_resource(path)
    return {(group, resource, each) for each in VERBS[verb]}


def group_and_resource(path: str) -> tuple[str, str]:
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces":
        rest = rest[2:]
    subresource = f"/{rest[2]}" if len(rest) > 2 else ""
    return group, rest[0] + subresource


def followed() -> set[Right]:
    places = [group_and_resource(kind.path(NAMESPACE)) for kind in KINDS]
    return {(*place, verb) for place in places for verb in ("list", "watch")}


def whole_life() -> list[str]:
    """Everything that was written from a policy's coming to its going."""
    cluster = Cluster()
    cluster.add_node("gpu-1")
    cluster.add_node("cp", control_plane=True)
    cards = {"source": "Simulated", "simulated": [{"count": 1, "memory": "16Gi"}]}
    cluster.add_policy("default", {"names": ["gpu-1"], "devices": cards})
    asyncio.run(converge(cluster))
    cluster.delete_policy("default")
    asyncio.run(converge(cluster))
    assert cluster.api.of(paths.POLICIES) == {}
    return cluster.api.writes


def test_the_roles_name_exactly_the_verbs_in_use() -> None:
    used: set[Any] = followed()
    for write in whole_life():
        used |= needed(write)
    assert allowed() == used
