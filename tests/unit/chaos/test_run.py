"""A run that cannot go on, and one that is played again."""

import argparse
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import chaos.run
import pytest
from chaos.__main__ import _folder_name
from chaos.findings import Finding, Findings
from chaos.run import Outcome, run
from chaos.traffic import Traffic
from chaos.world import World, _files

from gpushare_core.api.enums import Engine


async def test_whatever_goes_wrong_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of what was seen before is written all the same."""

    @asynccontextmanager
    async def fails(*_: object) -> AsyncIterator[World]:
        raise RuntimeError("etcd does not start")
        yield

    monkeypatch.setattr(chaos.run, "started", fails)
    said, outcome = list[str](), Outcome(Findings(lambda _: None))
    await run([], tmp_path, outcome, say=said.append)
    assert [str(finding) for finding in outcome.findings.all] == [
        "run: it ended: RuntimeError: etcd does not start"
    ]
    assert "Traceback" in said[0]


def test_a_history_that_is_played_again_leaves_its_folder_alone(tmp_path: Path) -> None:
    again = argparse.Namespace(history=tmp_path / "chaos-7" / "history.jsonl", seed=1, engine=Engine.PLUGIN)
    assert _folder_name(again) == "chaos-7-again"
    assert _folder_name(argparse.Namespace(history=None, seed=7, engine=Engine.EXTENDER)) == "chaos-7"
    assert _folder_name(argparse.Namespace(history=None, seed=7, engine=Engine.PLUGIN)) == "chaos-plugin-7"


def test_a_seed_gives_the_same_history_in_every_process() -> None:
    code = (
        "import hashlib, msgspec; from chaos.plan.generator import history;"
        " from chaos.operations.table import KINDS;"
        " print(hashlib.sha256(msgspec.json.encode(history(5, 400, KINDS))).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(seen) == 1


def test_an_ordinary_pod_that_is_blocked_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, found = [0.0], list[Finding]()
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    client: Any = None
    traffic = Traffic(client, found.append)
    traffic.created = {"ordinary-1": 0.0, "ordinary-2": 1.0}
    longest = traffic.longest_wait
    for now[0] in (longest, longest + 2, longest + 3):
        traffic.look()
    assert [finding.rule for finding in found] == ["I6"]
    assert "ordinary-1" in found[0].sentence
    traffic.waited = {"ordinary-1": 50.0, "ordinary-2": 50.0}
    traffic.look()
    traffic.created["ordinary-3"] = now[0]
    now[0] += longest + 1
    traffic.look()
    assert len(found) == 2


def test_folders_and_links_are_compared_too(tmp_path: Path) -> None:
    (tmp_path / "gpushare").mkdir()
    (tmp_path / "a.yaml").write_text("a")
    (tmp_path / "link").symlink_to("a.yaml")
    assert _files(tmp_path) == {"gpushare/": b"", "a.yaml": b"a", "link": b"-> a.yaml"}
