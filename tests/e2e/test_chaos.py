"""A short history of chaos on a cluster of its own: everything is broken a little, and no books differ.

`make chaos` plays longer ones; docs/robustness.md has their figures.
"""

from pathlib import Path

import pytest
from chaos.deadlines import Deadlines
from chaos.findings import Findings
from chaos.operations.table import KINDS
from chaos.plan.generator import history
from chaos.report import markdown
from chaos.run import Outcome, run

pytestmark = pytest.mark.e2e

SEED = 51
OPERATIONS = 60
DEADLINES = Deadlines(
    quiet=600.0,
    agreement=120.0,
    standing=120.0,
    patience=240.0,
    operation=240.0,
    healing=480.0,
    room=240.0,
    alarm=240.0,
    ordinary=180.0,
)
"""For two slow cores that run four other clusters, too: what hangs exceeds even these. `make chaos` uses the
promised ones."""


async def test_a_short_history_shows_no_difference(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    folder: Path = tmp_path_factory.mktemp("chaos")
    steps, outcome = history(SEED, OPERATIONS, KINDS), Outcome(Findings(print))
    await run(steps, folder, outcome, say=print, deadlines=DEADLINES)
    print(markdown(outcome, seed=str(SEED)))
    assert not outcome.findings.all, f"seed {SEED}, {OPERATIONS} operations; logs in {folder}"
    assert outcome.record.operations.total() + outcome.record.faults.total() == OPERATIONS
    assert outcome.record.faults, "a seed whose beginning has no fault tests nothing of that"
    assert outcome.readings > 5
    assert outcome.longest_wait <= DEADLINES.ordinary
