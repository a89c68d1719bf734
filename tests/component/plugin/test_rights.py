"""The plugin's role allows exactly what it does: following, repairing, reporting, telling pods."""

from pathlib import Path

import yaml
from tests.component.plugin.test_measured_use import BY_CONTAINER, load
from tests.fakes.api_server import EVENTS, LEASES, Seen
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json
from tests.samples.rights import Right, allowed, group_and_parts

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "rbac-plugin.yaml"


BOOKING: Right = ("gpushare.io", "allocations", "update")
"""Nothing that an API server serves."""


def used(seen: Seen) -> Right:
    group, rest = group_and_parts(seen.path)
    read = "watch" if seen.is_watch else "get" if len(rest) > 1 else "list"
    verb = {"GET": read, "POST": "create", "PATCH": "patch"}[seen.method]
    return (group, "/".join([rest[0], *rest[2:]]), verb)


async def test_the_role_names_exactly_the_verbs_in_use(node: Node) -> None:
    node.share(measurement=BY_CONTAINER)
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the annotation", lambda: node.allocation("a") is not None)
    load(node, "a", "5Gi")
    await node.until("the Event", lambda: len(node.api.objects[EVENTS]) == 1)
    await node.until("the Lease", lambda: bool(node.api.requests("POST", LEASES)))
    assert {used(seen) for seen in node.api.seen} == allowed(MANIFEST) - {BOOKING}


def test_what_admission_policies_know_plugins_by_is_a_right_of_the_same_role() -> None:
    """In a role of its own it could be missing where these are not: plugins changed pods of any node."""
    roles = [
        document["rules"] for document in yaml.safe_load_all(MANIFEST.read_text()) if "rules" in document
    ]
    known_by = {"apiGroups": ["gpushare.io"], "resources": ["allocations"], "verbs": ["update"]}
    assert [known_by in rules for rules in roles] == [True, True]
