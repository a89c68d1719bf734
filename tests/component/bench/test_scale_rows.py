"""Rows ``scale``: an extender beside the stand-in, at a size of seconds."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from bench.measuring.figures import Figure
from bench.measuring.size import QUICK
from bench.rows.programs import scale, scale_extender, workplace
from bench.rows.programs.scale_extender import LargeBooks

TINY = replace(QUICK, book_pods=2, calls=3, scale_seconds=0.5)
NODES = 20


@pytest.fixture
async def large(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LargeBooks]:
    monkeypatch.setattr(scale_extender, "LASTING_SECONDS", 0.1)
    monkeypatch.setattr(scale_extender, "REST_SECONDS", 0.1)
    monkeypatch.setattr(scale_extender, "AT_REST", 1.5)
    async with scale_extender.entered(TINY, NODES) as large:
        yield large


def by_name(figures: Sequence[Figure]) -> dict[str, float]:
    return {figure.what: figure.measured for figure in figures}


async def test_an_extender_is_measured_from_its_first_list_to_the_next(large: LargeBooks) -> None:
    books = by_name(await scale_extender.books(large))
    listed = books["read for it: /api/v1/pods"]
    assert books["extender, 20 nodes and 52 pods"] > 10
    assert listed > 0
    assert by_name(await scale_extender.audit(large))["filter meanwhile: longest"] > 0
    assert by_name(await scale_extender.filters(large))["filter, 20 names: p50"] > 0
    events = by_name(await scale_extender.events(large))
    assert events["pod events"] == 50
    assert 0.1 < events["one event on the wire"] < 10
    relist = by_name(await scale_extender.relist(large))
    both = listed + books["read for it: /apis/gpushare.io/v1alpha1/gpusharenodes"]
    assert relist["read"] == pytest.approx(both, rel=0.05), "all of it once more"
    assert relist["filter meanwhile: longest"] > 0


async def test_steps_are_measured_in_a_process_of_their_own() -> None:
    async with workplace.entered(TINY) as place:
        taken = by_name(await scale.steps(place, NODES))
    assert taken["the same list of pods again"] > 0
