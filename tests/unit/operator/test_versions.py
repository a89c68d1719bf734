"""The policy's status says which versions run; during a rollout it says that they differ."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    extender_pod,
    installed,
    node,
    policy,
    policy_actions,
    rule,
    scheduler_pods,
    share,
    snapshot,
)

from gpushare_core.api.names import VERSION_LABEL
from gpushare_core.process.version import VERSION
from gpushare_operator.actions import ApplyShareNode
from gpushare_operator.backends.extender_workload.daemon_set import extender_daemon_set
from gpushare_operator.cluster.readers.share_nodes import read_share_node
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.status.policy import policy_status
from gpushare_operator.status.versions import MAX_VERSIONS

ROOT = Path(__file__).parents[3]
NAMES = [f"gpu-{number}" for number in range(20)]
OWNER = policy("default", rule(*NAMES))


def versions(*seen: Any) -> dict[str, str]:
    status = policy_status(snapshot(OWNER, *seen), OWNER, INSTALLATION, now=NOW)
    return status.versions.to_json()


def test_all_programs_are_named() -> None:
    seen = [node("gpu-1"), share("gpu-1", OWNER), extender_pod(version="1"), installed(version="1")]
    others = {"extender": "1", "scheduler": "", "hostctl": "1"}
    assert versions(*seen) == {"operator": VERSION, "plugin": VERSION, **others}


def test_of_a_second_kube_scheduler_the_version_is_that_of_its_engine() -> None:
    """During a change of engine both run."""
    with_plugin = scheduler_pods(version="2")
    with_extender = scheduler_pods(name="scheduler-b", version="1", runs_extender=True)
    found = versions(with_plugin, with_extender)
    assert (found["scheduler"], found["extender"]) == ("2", "1")


def test_during_a_rollout_each_version_has_its_number() -> None:
    nodes = [node(name) for name in NAMES[:3]]
    shares = [share(name, OWNER, plugin_version=version) for name, version in zip(NAMES, "122", strict=False)]
    assert versions(*nodes, *shares)["plugin"] == "2 (2), 1 (1)"


def test_versions_in_any_number_are_bounded() -> None:
    shares = [share(name, OWNER, plugin_version=name) for name in NAMES]
    text = versions(*map(node, NAMES), *shares)["plugin"]
    assert text.count("(1)") == MAX_VERSIONS
    assert text.endswith("...")


def test_what_the_operator_makes_names_its_version_and_no_selector_does() -> None:
    for body in (plugin_daemon_set(OWNER, INSTALLATION), extender_daemon_set(INSTALLATION, [22766])):
        template = body["spec"]["template"]
        assert body["metadata"]["labels"][VERSION_LABEL] == VERSION
        assert template["metadata"]["labels"][VERSION_LABEL] == VERSION
        assert VERSION_LABEL not in body["spec"]["selector"]["matchLabels"], "it could never be changed"


def test_a_share_node_of_an_earlier_version_gets_the_label_and_stays_ready_meanwhile() -> None:
    earlier = share("gpu-1", OWNER, version="0.0.1")
    seen = snapshot(OWNER, node("gpu-1"), earlier)
    (body,) = [
        policy_action.body
        for policy_action in policy_actions(seen)
        if isinstance(policy_action, ApplyShareNode)
    ]
    assert read_share_node({**body, "metadata": {**body["metadata"], "uid": ""}}).version == VERSION
    assert policy_status(seen, OWNER, INSTALLATION, now=NOW).nodes.ready == 1
    current = snapshot(OWNER, node("gpu-1"), replace(earlier, version=VERSION))
    assert not [
        policy_action
        for policy_action in policy_actions(current)
        if isinstance(policy_action, ApplyShareNode)
    ]


def test_everything_that_is_installed_names_its_version() -> None:
    folders = (ROOT / "manifests", ROOT / "crds", ROOT / "config" / "auditor", ROOT / "config" / "monitoring")
    paths = [
        path for folder in folders for path in folder.rglob("*.yaml") if path.name != "kustomization.yaml"
    ]
    bodies = [body for path in paths for body in yaml.safe_load_all(path.read_text())]
    objects = [body for body in bodies if isinstance(body, dict) and "kind" in body]
    unlabelled = [
        f"{body['kind']} {body['metadata']['name']}"
        for body in objects
        if (body["metadata"].get("labels") or {}).get(VERSION_LABEL) != VERSION
    ]
    assert unlabelled == []
    assert len(objects) > 60
