"""A unit does not change its size while a pod holds some."""

import pytest
from tests.samples.plugin import annotation, assigned, by_name, container, pod

from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.offer.unit_change import HeldUnit, held_units, unit_in_force

GI, GI_AS_MI, HALF = (MemoryUnit.parse(text) for text in ("1Gi", "1024Mi", "512Mi"))
ADMITTED, PROMISED = HeldUnit(GI, admitted=True, pod="a"), HeldUnit(GI, admitted=False, pod="b")


@pytest.mark.parametrize(
    ("desired", "recorded", "held", "expected"),
    [
        pytest.param(GI, None, [], (GI, ()), id="first start"),
        pytest.param(HALF, GI, [], (HALF, ()), id="nobody in the way"),
        pytest.param(HALF, GI, [PROMISED, ADMITTED], (GI, ("a", "b")), id="two pods in the way"),
        pytest.param(HALF, GI, [PROMISED], (GI, ("b",)), id="a promise is in the way, too"),
        pytest.param(
            HALF,
            GI,
            [HeldUnit(None, admitted=True, pod="c")],
            (GI, ("c",)),
            id="no annotation yet",
        ),
        pytest.param(GI_AS_MI, GI, [ADMITTED], (GI_AS_MI, ()), id="the same size in other words"),
        pytest.param(HALF, None, [ADMITTED], (GI, ("a",)), id="nothing recorded: annotations tell"),
        pytest.param(
            HALF,
            None,
            [HeldUnit(HALF, admitted=False), HeldUnit(HALF, admitted=False), ADMITTED],
            (GI, ("a",)),
            id="an admitted pod knows better than promised ones",
        ),
        pytest.param(
            HALF,
            GI,
            [HeldUnit(HALF, admitted=False)],
            (HALF, ()),
            id="promised in the desired unit already",
        ),
        pytest.param(HALF, HALF, [PROMISED], (HALF, ()), id="a late promise does not turn it back"),
        pytest.param(HALF, None, [HeldUnit(None, admitted=True)], (HALF, ()), id="nobody knows"),
    ],
)
def test_a_unit_does_not_change_its_size_while_a_pod_holds_some(
    desired: MemoryUnit,
    recorded: MemoryUnit | None,
    held: list[HeldUnit],
    expected: tuple[MemoryUnit, tuple[str, ...]],
) -> None:
    assert unit_in_force(desired, recorded, held) == expected


def test_units_are_held_by_pods_with_an_assignment_and_pods_with_a_promise() -> None:
    pods = by_name(
        pod("held", container(units=4), annotation=annotation()),
        pod("promised", container(units=4), annotation=annotation(unit="512Mi")),
        pod("waiting", container(units=4)),
        pod("forged", container(units=4), annotation="not ours"),
    )
    found = held_units(pods, assigned(held={"main": [0]}, unknown={"main": [1]}))
    assert found == [
        HeldUnit(GI, admitted=True, pod="default/held"),
        HeldUnit(HALF, admitted=False, pod="default/promised"),
        HeldUnit(None, admitted=True, pod="default/unknown"),
    ]
