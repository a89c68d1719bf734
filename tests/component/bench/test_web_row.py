"""Row ``web`` at a size of seconds."""

from dataclasses import replace
from pathlib import Path

import pytest
from bench.measuring.figures import NotMeasuredError
from bench.measuring.size import QUICK
from bench.rows.programs import web_page
from bench.rows.programs.workplace import Workplace


async def test_a_page_is_drawn_while_its_server_reads_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_page, "READ_ROUNDS", 2)
    try:
        figures = await web_page.costs(Workplace(tmp_path, replace(QUICK, book_nodes=20, book_pods=2)))
    except NotMeasuredError as error:
        pytest.skip(str(error))
    assert [figure.what for figure in figures] == [
        "redraw after a change, 20 nodes x 8 cards: median",
        "the same: longest",
        "the same: shortest",
        "the map alone: median",
        "page, 20 nodes x 8 cards",
        "its heap of JavaScript",
        "server, 20 nodes and 52 pods, one page",
        "server: peak",
    ]
    assert all(figure.measured > 0 for figure in figures)
