"""Where a pod gets another card than the annotated one people learn why."""

from dataclasses import replace

import pytest
from tests.samples.plugin import card, layout

from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.admit.preferred_allocation import (
    CLOSED,
    NO_ROOM,
    NOT_ON_NODE,
    OTHER_CLASS,
    SAME_POD,
    ContainerRequest,
    reason_for_other_card,
)

ANNOTATED = ContainerRequest(units=2, pod_units=2, annotated_cards=("GPU-0",))
HINTED = ContainerRequest(units=2, pod_units=2, hinted_cards=("GPU-0",))


@pytest.mark.parametrize(
    ("request_", "cards", "expected"),
    [
        pytest.param(ANNOTATED, ("GPU-0",), "", id="the annotated card"),
        pytest.param(replace(ANNOTATED, annotated_cards=()), ("GPU-1",), "", id="nothing is annotated"),
        pytest.param(ANNOTATED, ("GPU-1",), NO_ROOM, id="no room"),
        pytest.param(HINTED, ("GPU-1",), NO_ROOM, id="no room on the card that another scheduler named"),
        pytest.param(
            replace(ANNOTATED, annotated_cards=("GPU-9",)), ("GPU-1",), NOT_ON_NODE, id="not on this node"
        ),
        pytest.param(replace(ANNOTATED, annotated_cards=("GPU-2",)), ("GPU-1",), CLOSED, id="closed"),
        pytest.param(
            replace(ANNOTATED, locks={"GPU-0": ResourceClass.SLICE}), ("GPU-1",), OTHER_CLASS, id="locked"
        ),
        pytest.param(
            replace(ANNOTATED, pod_cards=frozenset({"GPU-1"})), ("GPU-1",), SAME_POD, id="beside its others"
        ),
        pytest.param(
            replace(ANNOTATED, annotated_cards=("GPU-0", "GPU-9")),
            ("GPU-0", "GPU-1"),
            NOT_ON_NODE,
            id="one of two",
        ),
    ],
)
def test_the_reason_says_what_kept_the_container_from_the_annotated_card(
    request_: ContainerRequest, cards: tuple[str, ...], expected: str
) -> None:
    three = layout(card(0), card(1), replace(card(2), healthy=False))
    assert reason_for_other_card(request_, three, cards) == expected
