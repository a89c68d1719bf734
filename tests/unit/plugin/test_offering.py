"""What is offered follows from what is asked, what is there, and what pods hold."""

from typing import Any

import pytest
from tests.samples.plugin import annotation, books, by_name, card, container, layout, pod, share_node

from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.effective import Holder, InForce, find_holders, unit_in_force
from gpushare_plugin.decide.holdings import Books
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.offering import Offering, Snapshot, decide_offering
from gpushare_plugin.decide.pods import Pod
from gpushare_plugin.devices.cards import PhysicalCard

FOUND = (card(0), card(1))
GI, GI_AS_MI, HALF = (MemoryUnit.parse(text) for text in ("1Gi", "1024Mi", "512Mi"))
ADMITTED, PROMISED = Holder(GI, admitted=True), Holder(GI, admitted=False)


@pytest.mark.parametrize(
    ("wanted", "recorded", "holders", "expected"),
    [
        pytest.param(GI, None, [], InForce(GI), id="first start"),
        pytest.param(HALF, GI, [], InForce(HALF), id="nobody in the way"),
        pytest.param(HALF, GI, [ADMITTED, ADMITTED], InForce(GI, 2), id="two pods in the way"),
        pytest.param(HALF, GI, [PROMISED], InForce(GI, 1), id="a promise is in the way, too"),
        pytest.param(HALF, GI, [Holder(None, admitted=True)], InForce(GI, 1), id="no annotation yet"),
        pytest.param(GI_AS_MI, GI, [ADMITTED], InForce(GI_AS_MI), id="the same size in other words"),
        pytest.param(HALF, None, [ADMITTED], InForce(GI, 1), id="nothing recorded: annotations tell"),
        pytest.param(
            HALF,
            None,
            [Holder(HALF, admitted=False), Holder(HALF, admitted=False), ADMITTED],
            InForce(GI, 1),
            id="an admitted pod knows better than promised ones",
        ),
        pytest.param(
            HALF, GI, [Holder(HALF, admitted=False)], InForce(HALF), id="promised in the wanted unit already"
        ),
        pytest.param(HALF, HALF, [PROMISED], InForce(HALF), id="a late promise does not turn it back"),
        pytest.param(HALF, None, [Holder(None, admitted=True)], InForce(HALF), id="nobody knows"),
    ],
)
def test_a_unit_does_not_change_its_size_while_a_pod_holds_some(
    wanted: MemoryUnit, recorded: MemoryUnit | None, holders: list[Holder], expected: InForce
) -> None:
    assert unit_in_force(wanted, recorded, holders) == expected


def test_holders_are_pods_of_the_books_and_pods_with_a_promise() -> None:
    pods = by_name(
        pod("held", container(units=4), annotation=annotation()),
        pod("promised", container(units=4), annotation=annotation(unit="512Mi")),
        pod("waiting", container(units=4)),
        pod("forged", container(units=4), annotation="not ours"),
    )
    found = find_holders(pods, books(held={"main": [0]}, unknown={"main": [1]}))
    assert found == [Holder(GI, admitted=True), Holder(HALF, admitted=False), Holder(None, admitted=True)]


def decided(
    unit: str = "1Gi",
    *pods: Pod,
    held: Books | None = None,
    last: Layout | None = None,
    found: tuple[PhysicalCard, ...] | None = FOUND,
    status: dict[str, Any] | None = None,
    limit: int = 4 * 2**20,
    **spec: Any,
) -> Offering:
    return decide_offering(
        Snapshot(
            node=share_node(unit, status=status, **spec),
            found=found,
            last=last,
            books=held or Books(),
            pods=by_name(*pods),
            limit=limit,
        )
    )


HELD = books(a={"main": [16, 17]})
HOLDER = pod("a", container(units=2), annotation=annotation({"main": {"GPU-1": 2}}))


def test_a_first_start_offers_what_is_asked_less_what_is_reserved() -> None:
    offering = decided(reservedMemory="512Mi")
    assert offering == Offering(layout=layout(reserved=2**29))


@pytest.mark.parametrize(
    "node", [pytest.param(None, id="no GPUShareNode"), pytest.param(share_node(mode="Off"), id="mode Off")]
)
def test_a_node_that_is_not_shared_offers_nothing(node: object) -> None:
    snapshot = Snapshot(node=node, found=FOUND, last=layout(), books=HELD, pods={})  # type: ignore[arg-type]
    assert decide_offering(snapshot) == Offering()


def test_a_change_of_unit_waits_for_the_pods() -> None:
    assert decided("512Mi", HOLDER, held=HELD, last=layout()) == Offering(layout=layout(), blocked_by=1)
    assert decided("512Mi", last=layout()) == Offering(layout=layout(unit="512Mi"))


def test_a_change_of_unit_waits_for_the_pods_over_a_restart() -> None:
    status: dict[str, Any] = {
        "memoryUnit": "1Gi",
        "cards": [{"index": i, "uuid": f"GPU-{i}", "memory": "16Gi", "units": 16} for i in range(2)],
    }
    offering = decided("512Mi", HOLDER, held=HELD, status=status)
    assert offering.layout
    assert (offering.layout.unit, offering.blocked_by) == (GI, 1)


def test_a_change_of_unit_waits_for_the_pods_of_a_policy_that_was_deleted_and_applied_anew() -> None:
    assert decided("512Mi", HOLDER, held=HELD).blocked_by == 1


def test_cards_change_at_once_but_never_under_a_pod() -> None:
    more = (card(0, memory=32 * 2**30), card(1), card(2))
    assert decided(found=more, last=layout()).layout == layout(*more)
    kept = decided("1Gi", HOLDER, held=HELD, found=more, last=layout()).layout
    assert kept == layout(card(0), card(1), card(2))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"mode": "Slices", "slicesPerCard": 2}, "UnsupportedMode", id="mode"),
        pytest.param({"dialect": "aliyun.com"}, "UnsupportedDialect", id="dialect"),
        pytest.param({"devices": {"source": "NVML"}}, "UnsupportedSource", id="source"),
        pytest.param({"memoryUnit": "a lot"}, "InvalidUnit", id="unit"),
        pytest.param({"memoryUnit": "0Gi"}, "InvalidUnit", id="no unit at all"),
    ],
)
def test_what_is_not_served_yet_is_said_and_pods_keep_what_they_have(
    spec: dict[str, Any], reason: str
) -> None:
    unit = str(spec.pop("memoryUnit", "1Gi"))
    free = decided(unit, last=layout(), **spec)
    assert free.problem
    assert (free.layout, free.problem.reason) == (None, reason)
    held = decided(unit, HOLDER, held=HELD, last=layout(), found=None, **spec)
    assert (held.layout, held.blocked_by) == (layout(), 1)


def test_a_unit_that_is_too_fine_leaves_the_last_one_in_force() -> None:
    offering = decided("1Mi", last=layout(), limit=1000)
    assert offering.layout == layout()
    assert offering.finest
    assert (offering.finest.text, offering.wanted_units) == ("513Mi", 32768)


def test_a_unit_that_is_too_fine_from_the_start_offers_nothing() -> None:
    offering = decided("1Mi", limit=1000)
    assert (offering.layout, offering.finest is None) == (None, False)


def test_a_unit_that_is_too_fine_leaves_the_recorded_one_in_force_after_a_restart() -> None:
    assert decided("1Mi", limit=1000, status={"memoryUnit": "1Gi"}).layout == layout()
