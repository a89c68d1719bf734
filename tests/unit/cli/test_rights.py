"""What ``gpushare-auditor`` allows is what the command reads, and nothing else."""

from pathlib import Path

import yaml

from gpushare_cli.decide.drain.cordon import cordoned_annotations
from gpushare_cli.gather.cluster import COLLECTIONS
from gpushare_core.kube.paths import PODS, SHARE_NODES

ROOT = Path(__file__).resolve().parents[3]


def test_an_auditor_may_list_what_the_command_lists_and_nothing_else() -> None:
    (role,) = yaml.safe_load_all((ROOT / "config" / "auditor" / "rbac.yaml").read_text())
    allowed = {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert all(rule["verbs"] == ["list"] for rule in role["rules"])
    assert allowed == {_group_and_resource(path) for path in (PODS, SHARE_NODES, *COLLECTIONS.values())}


def test_who_looks_after_cards_may_write_what_cordon_writes() -> None:
    manifests = yaml.safe_load_all((ROOT / "manifests" / "admission-share-nodes.yaml").read_text())
    (policy,) = [
        item
        for item in manifests
        if (item["kind"], item["metadata"]["name"]) == ("ValidatingAdmissionPolicy", "gpushare-cards")
    ]
    (validation,), variables = policy["spec"]["validations"], policy["spec"]["variables"]
    (keys,) = [variable["expression"] for variable in variables if variable["name"] == "keys"]
    for annotation in cordoned_annotations({}, (), reason=""):
        assert repr(annotation) in keys
        assert repr(annotation) in validation["expression"]


def _group_and_resource(path: str) -> tuple[str, str]:
    _, root, *rest = path.split("/")
    return ("" if root == "api" else rest[0], rest[-1])
