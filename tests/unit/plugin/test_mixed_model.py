"""A kubelet in mode Mixed against the plugin's decisions: pods of every class come and go."""

from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import GIB, card, environment, ids

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import UnitFields
from gpushare_plugin.decide.admit.preferred_allocation import ContainerRequest, NothingFitsError, choose_units
from gpushare_plugin.decide.units.layout import lay_out
from gpushare_plugin.decide.units.locks import locks_of_units, open_cards
from gpushare_plugin.decide.units.unit_ids import UnitSet

UNIT = NODE_MODES["Mixed"].unit(UnitFields("1Gi", 2))
MANY = lay_out([card(index, memory=size * GIB) for index, size in enumerate((4, 8, 8))], UNIT, reserved=0)
STEPS = st.lists(
    st.tuples(st.sampled_from(["admit", "admit", "end"]), st.sampled_from(ResourceClass), st.integers(1, 6)),
    max_size=60,
)


@given(STEPS)
def test_whatever_the_kubelet_asks_for_no_card_serves_two_classes(
    steps: list[tuple[str, ResourceClass, int]],
) -> None:
    """It offers what it was sent, less what it has assigned."""
    running: list[tuple[ResourceClass, list[int]]] = []
    for step, resource, amount in steps:
        locks = locks_of_units(MANY, [numbers for _, numbers in running])
        if step == "end" and running:
            running.pop(amount % len(running))
            continue
        taken = {number for _, numbers in running for number in numbers}
        sent = open_cards(MANY.of(resource), locks).cards
        offered = {number for placed in sent for number in placed.numbers} - taken
        request = ContainerRequest(units=amount, pod_units=amount, locks=locks)
        try:
            _, numbers = choose_units(
                request,
                MANY.of(resource),
                available=UnitSet(offered),
                included=(),
                strategy=Strategy.BINPACK,
            )
        except NothingFitsError:
            continue
        assert set(numbers) <= offered
        assert environment(ids(*numbers), MANY, GPUSHARE)
        running.append((resource, numbers))
        for placed in MANY.cards:
            here = {holder for holder, held in running if placed.uuid in MANY.shares(held)}
            assert len(here) <= 1
