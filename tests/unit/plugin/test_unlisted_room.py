"""Whether a card has room beside units of pods that a kubelet has not listed since its start."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest
from tests.samples.plugin import assigned, by_name, layout, name_of, node_assignments, stored

from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.lost_assignments import require_room_beside_unlisted
from gpushare_plugin.decide.units.errors import UnusableUnitsError

EVERY = range(16)
FIRST = replace(assigned(first={"main": [*range(12)]}), unshown=frozenset({name_of("first")}))
STORED_ALONE = AssignedDevices(stored=stored(layout(), first={"main": [*range(12)]}))


@pytest.mark.parametrize("silent", [False, True], ids=["they answer", "they are silent"])
@pytest.mark.parametrize(
    ("known", "asked", "refused"),
    [
        pytest.param(FIRST, EVERY, [True, True], id="all"),
        pytest.param(FIRST, range(11, 16), [True, True], id="one too many"),
        pytest.param(FIRST, range(4), [False, False], id="as many as there is room for"),
        pytest.param(FIRST, range(12, 16), [False, False], id="the others"),
        pytest.param(FIRST, range(16, 32), [False, False], id="another card"),
        # In silence it may be that very container: it is not known whether the kubelet has heard of its pod.
        pytest.param(FIRST, range(12), [True, False], id="as many as a container has"),
        # Without any list the checkpoint's entries may be of pods that have ended.
        pytest.param(STORED_ALONE, EVERY, [True, False], id="known by the checkpoint alone"),
    ],
)
def test_units_of_pods_that_are_not_shown_yet(
    known: AssignedDevices, asked: Iterable[int], refused: list[bool], *, silent: bool
) -> None:
    expected: AbstractContextManager[object] = nullcontext()
    if refused[silent]:
        expected = pytest.raises(UnusableUnitsError, match="has not listed all of their pods")
    with expected:
        require_room_beside_unlisted(
            [*asked],
            ResourceClass.MEMORY,
            taken=known.holdings(),
            assignments=node_assignments(known),
            pods=by_name(),
            unavailable=silent,
        )
