"""The table of distributions says of each what `kubectl gpushare preflight` says of it."""

import re
from pathlib import Path

import pytest

from gpushare_cli.decide.preflight.distributions import DISTRIBUTIONS, KUBEADM, Distribution

DOCUMENT = (Path(__file__).parents[3] / "docs/scheduler-backends.md").read_text()
_, _, _REST = DOCUMENT.partition("## On your distribution\n")
TABLE = dict(re.findall(r"^\| ([\w, ]+?) \| `(\w+)`", _REST.partition("\n### ")[0], re.MULTILINE))
"""Names of distributions -> the backend that comes first."""


@pytest.mark.parametrize("distribution", [KUBEADM, *DISTRIBUTIONS], ids=lambda item: item.name)
def test_the_backend_of_the_table_is_that_of_preflight(distribution: Distribution) -> None:
    (backend,) = [backend for names, backend in TABLE.items() if distribution.name in names.split(", ")]
    assert backend == distribution.backend


def test_preflight_knows_every_distribution_of_the_table() -> None:
    named = {name for names in TABLE for name in names.split(", ")}
    assert named == {KUBEADM.name, *(distribution.name for distribution in DISTRIBUTIONS)}
