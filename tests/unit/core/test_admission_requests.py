"""The admission policy for what pods ask for names the resources of every dialect."""

import re
from pathlib import Path

import yaml

from gpushare_core.dialects.table import RESOURCES

MANIFEST = Path(__file__).parents[3] / "manifests" / "admission-requests.yaml"


def test_every_resource_is_named_but_that_of_nvidia() -> None:
    policy, _ = yaml.safe_load_all(MANIFEST.read_text())
    named = next(each["expression"] for each in policy["spec"]["variables"] if each["name"] == "ours")
    assert set(re.findall(r"'([^']+)'", named)) == RESOURCES.keys() - {"nvidia.com/gpu"}
