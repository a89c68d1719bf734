"""An upgrade of the CRDs refuses nothing that was accepted before, and loses nothing that is stored."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from tests.releases.release import ROOT, last_release
from tests.releases.schema_changes import breaking_changes

NEVER_SERVED = (".devices.inventoryPath: ",)
"""Fields that the last release refused to serve: what they may say could be decided anew, once."""
BOUNDS = tuple(f": {bound} was None" for bound in ("maxLength", "maxItems", "maxProperties", "pattern"))
"""What statuses got when they had none: wider than anything that a program of ours has ever written."""
REFUSED_NOW = (
    "matchExpressions[]: new rule !(self.operator in ['In', 'NotIn'])",
    "matchExpressions[]: new rule self.operator in ['In', 'NotIn']",
    "names[]: new rule self.matches(",
    "matchLabels[]: new rule self.matches(",
    "nodes: new rule self.all(a, !has(a.selector) || self.exists_one(b,",
)
"""What had no effect: entries that selected nothing, or nothing that is left. A policy that says it still is
written to, as long as nobody changes that part (``tests/e2e/test_crds.py``)."""
FILES = ("gpushare.io_gpusharepolicies.yaml", "gpushare.io_gpusharenodes.yaml")


@pytest.mark.parametrize("file", FILES)
def test_the_crds_only_gained_since_the_last_release(file: str) -> None:
    released = yaml.safe_load(last_release().read(f"crds/{file}"))
    changes = breaking_changes(released, yaml.safe_load((ROOT / "crds" / file).read_text()))
    known = [change for change in changes if any(field in change for field in NEVER_SERVED)]
    known += [change for change in changes if ".status." in change and change.endswith(BOUNDS)]
    known += [change for change in changes if any(rule in change for rule in REFUSED_NOW)]
    assert [change for change in changes if change not in known] == []


def present() -> Any:
    return yaml.safe_load((ROOT / "crds" / FILES[0]).read_text())


def spec_of(crd: Any) -> Any:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda spec: spec["properties"].pop("dialect"), "spec.dialect is gone", id="field"),
        pytest.param(
            lambda spec: spec["properties"]["dialect"]["enum"].remove("tuya.com"),
            "spec.dialect: tuya.com is refused",
            id="value",
        ),
        pytest.param(
            lambda spec: spec["properties"]["memoryUnit"].update(enum=["1Gi"]),
            "spec.memoryUnit: anything is refused",
            id="values where there were none",
        ),
        pytest.param(
            lambda spec: spec["required"].append("dialect"), "spec: dialect is required", id="required"
        ),
        pytest.param(
            lambda spec: spec["properties"]["nodes"].update(maxItems=1),
            "spec.nodes: maxItems was 12",
            id="bound",
        ),
        pytest.param(
            lambda spec: spec["properties"]["nodes"]["items"]["properties"]["mode"].update(default="Off"),
            "spec.nodes[].mode: default was Memory",
            id="default",
        ),
        pytest.param(
            lambda spec: spec["properties"]["memoryUnit"].update(type="integer"),
            "spec.memoryUnit: type was string",
            id="type",
        ),
        pytest.param(
            lambda spec: spec["properties"]["memoryUnit"]["x-kubernetes-validations"].append(
                {"rule": "false"}
            ),
            "spec.memoryUnit: new rule false",
            id="rule",
        ),
    ],
)
def test_what_would_break_is_found(change: Callable[[Any], Any], said: str) -> None:
    changed = present()
    change(spec_of(changed))
    assert breaking_changes(present(), changed) == [f"v1alpha1.{said}"]


def test_a_version_that_goes_is_found() -> None:
    changed = present()
    changed["spec"]["versions"][0]["served"] = False
    assert breaking_changes(present(), changed) == ["version v1alpha1 is not served any more"]


WITH_DEFAULT = {"type": "string", "enum": ["a", "b"], "default": "a"}
WITHOUT_DEFAULT = {"type": "string", "enum": ["a", "b"]}


def with_new_rule(field: Any, rule: str) -> Any:
    changed = present()
    spec_of(changed)["properties"]["new"] = field
    spec_of(changed)["x-kubernetes-validations"].append({"rule": rule})
    return changed


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        pytest.param(WITHOUT_DEFAULT, "!has(self.new) || self.new == 'b'", id="it is not there"),
        pytest.param(WITH_DEFAULT, "self.new != 'b' || has(self.dialect)", id="another value is filled in"),
    ],
)
def test_a_new_rule_about_a_new_field_breaks_nothing(field: Any, rule: str) -> None:
    assert breaking_changes(present(), with_new_rule(field, rule)) == []


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        pytest.param(WITH_DEFAULT, "!has(self.new) || self.new == 'b'", id="it is filled in"),
        pytest.param(WITH_DEFAULT, "self.new != 'a' || has(self.dialect)", id="this value is filled in"),
        pytest.param(WITHOUT_DEFAULT, "(!has(self.new) || true) && has(self.dialect)", id="more is asked"),
        pytest.param(WITHOUT_DEFAULT, "!has(self.dialect) || self.new == 'b'", id="an old field"),
        pytest.param(WITHOUT_DEFAULT, "self.nodes.all(a, !has(a.names) || false)", id="an old item"),
    ],
)
def test_a_new_rule_that_asks_for_more_than_a_new_field_is_found(field: Any, rule: str) -> None:
    assert breaking_changes(present(), with_new_rule(field, rule)) == [f"v1alpha1.spec: new rule {rule}"]


def test_a_new_rule_about_a_new_field_of_list_items_breaks_nothing() -> None:
    changed = present()
    spec = spec_of(changed)
    spec["properties"]["nodes"]["items"]["properties"]["new"] = WITHOUT_DEFAULT
    spec["x-kubernetes-validations"].append(
        {"rule": "self.nodes.all(a, !has(a.new) || a.new == 'b') || false"}
    )
    assert breaking_changes(present(), changed) == []


def test_additions_break_nothing() -> None:
    changed = copy.deepcopy(present())
    spec = spec_of(changed)
    spec["properties"]["new"] = {"type": "string", "enum": ["a"], "default": "a"}
    spec["properties"]["dialect"]["enum"].append("another")
    spec["properties"]["nodes"]["maxItems"] = 100
    assert breaking_changes(present(), changed) == []
