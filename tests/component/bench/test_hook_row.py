"""Row ``hook`` at a size of seconds."""

from pathlib import Path

import pytest
from bench.measuring.size import QUICK
from bench.rows.programs import hook
from bench.rows.programs.workplace import Workplace


async def test_programs_with_and_without_the_hook_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ALLOCATIONS", "TURNS", "STARTS"):
        monkeypatch.setattr(hook, name, 2)
    figures = await hook.costs(Workplace(tmp_path, QUICK))
    assert [figure.what for figure in figures] == [
        "allocation and its free, without",
        "allocation and its free, with the hook",
        "allocation and its free: more with the hook",
        "start of a process, without",
        "start of a process, with the hook",
        "start of a process: more with the hook",
    ]
    assert all(figure.measured > 0 for figure in figures[:2])
