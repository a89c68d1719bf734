"""The page of symptoms quotes what programs say, and names reasons that they have."""

import ast
import re

import pytest
from tests.unit.docs import written_names
from tests.unit.docs.written_names import ROOT

from gpushare_core.placement.modes.sharing_mode import Room
from gpushare_core.placement.modes.table import EXCLUSIVE, MEMORY, SLICES
from gpushare_core.scheduling.ledger.unfit_reason import NOT_TOGETHER

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
OF_KUBERNETES = {"UnexpectedAdmissionError", "ImagePullBackOff", "PodSecurity", "Evicted", "Insufficient"}
"""What Kubernetes itself says."""
A_REASON = re.compile(r"`([A-Z][a-z]+(?:[A-Z][A-Za-z]*)+)`")
A_QUOTATION = re.compile(r"^\| `(node\(s\) [^`]+)`", re.MULTILINE)
OF_AMOUNTS = re.compile(r"^\| `(insufficient GPU [^`]+)`", re.MULTILINE)
VALUES = {"Memory", "Slices", "Exclusive", "Mixed", "Dedicated", "External", "KubeScheduler"}
KINDS = {"GPUShareNode", "GPUSharePolicy", "ClusterRole", "DaemonSet", "LimitRange", "ResourceQuota"}


@pytest.fixture(scope="module")
def said() -> str:
    """Every piece of text in the programs."""
    nodes = (node for module in written_names.modules().values() for node in ast.walk(module.tree))
    pieces = (node.value for node in nodes if isinstance(node, ast.Constant))
    return "\n".join(piece for piece in pieces if isinstance(piece, str))


def test_every_reason_is_one_that_programs_have() -> None:
    known = (
        written_names.condition_types() | written_names.condition_reasons() | written_names.event_reasons()
    )
    assert set(A_REASON.findall(PAGE)) - known - OF_KUBERNETES - VALUES - KINDS == set()


@pytest.mark.parametrize("quotation", A_QUOTATION.findall(PAGE))
def test_what_a_waiting_pod_is_told_is_quoted_as_programs_say_it(quotation: str, said: str) -> None:
    """Up to the first name."""
    assert quotation.partition(" ...")[0] in said


def test_amounts_that_do_not_suffice_are_quoted_as_modes_explain_them() -> None:
    explained = {
        MEMORY.explain(20, Room(possible=20, greatest=16)),
        SLICES.explain(2, Room(possible=2, greatest=1)),
        EXCLUSIVE.explain(2, Room(possible=2, greatest=1)),
        NOT_TOGETHER.message,
    }
    assert set(OF_AMOUNTS.findall(PAGE)) == explained
