"""An excess is remembered for a while; a source's warning is logged once."""

import logging
from collections.abc import Callable

import pytest
from tests.samples.plugin import GIB, card, container, layout, pod, share_node

from gpushare_plugin.cluster.container_names import ContainerNames
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.devices.card import Reading
from gpushare_plugin.devices.use import ContainerUse, Use, UseQuestion
from gpushare_plugin.reconcile.use_meter import EXCESS_ENDS_AFTER, MAX_WARNINGS, UseMeter
from gpushare_plugin.state import PluginState

HELD = [PodAllocation(pod("a", container("main", 4)), {"main": {"GPU-0": 4}}, {"GPU-0": 4})]


class Source:
    """Tells what the test has set."""

    def __init__(self) -> None:
        self.use = Use()
        self.asked: list[UseQuestion] = []

    async def measure(self, question: UseQuestion) -> Use:
        self.asked.append(question)
        return self.use


def of_main(size: int) -> Use:
    used = ContainerUse(uid="uid-a", container="main", card="GPU-0", used=size)
    return Use(cards={"GPU-0": size}, containers=[used])


def meter(
    source: Source, clock: Callable[[], float], scope: str = "Containers"
) -> tuple[UseMeter, PluginState]:
    state = PluginState("gpu-1", reading=Reading(cards=(card(0), card(1))))
    state.share_node = share_node(measurement={"scope": scope, "intervalSeconds": 60})
    names = ContainerNames(None)  # type: ignore[arg-type]  # nothing is looked up
    return UseMeter(state, names, open_use=lambda _: source, clock=clock), state


async def test_an_excess_is_remembered_for_a_while() -> None:
    source, now = Source(), [0.0]
    measuring, state = meter(source, lambda: now[0])
    seen = []
    for at, size in [(0, 3), (30, 5), (60, 4), (30 + EXCESS_ENDS_AFTER - 1, 4), (30 + EXCESS_ENDS_AFTER, 4)]:
        now[0], source.use = at, of_main(size * GIB)
        await measuring.measure(layout(), HELD)
        assert state.measured
        seen.append(len(state.measured.exceeded_lately))
    assert seen == [0, 1, 1, 1, 0]


async def test_the_policy_says_what_is_asked_and_how_often() -> None:
    source = Source()
    for scope in ("Off", "Cards", "Containers"):
        measuring, _ = meter(source, lambda: 0.0, scope)
        await measuring.measure(layout(), HELD)
    assert [(question.by_container, question.interval) for question in source.asked] == [
        (False, 60),
        (True, 60),
    ]


async def test_a_warning_is_logged_once_and_not_remembered_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    measuring, _ = meter(source, lambda: 0.0)
    with caplog.at_level(logging.WARNING):
        for number in [0, 0, *range(1, MAX_WARNINGS + 1), 0]:
            source.use = Use(warnings=[f"warning {number}"])
            await measuring.measure(layout(), HELD)
    assert [record.getMessage() for record in caplog.records].count("warning 0") == 2
