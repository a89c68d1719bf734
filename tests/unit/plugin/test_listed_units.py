"""Units that a kubelet has chosen although it lists them as those of a container."""

from dataclasses import replace

import pytest
from tests.samples.plugin import assigned, name_of

from gpushare_plugin.decide.admit.pod_being_admitted import require_not_listed
from gpushare_plugin.decide.units.errors import UnusableUnitsError

LISTED = assigned(idle={"main": []}, first={"main": [2, 3, 9], "side": [4]}, second={"main": [20]})


@pytest.mark.parametrize(
    ("asked", "owner"),
    [
        pytest.param([3], "1 units that a container of default/first", id="one of them"),
        pytest.param([20, 0, 21], "1 units that a container of default/second", id="in any order"),
        pytest.param([*range(10)], "4 units that a container of default/first", id="of two containers"),
    ],
)
def test_whose_they_are_is_said(asked: list[int], owner: str) -> None:
    with pytest.raises(UnusableUnitsError, match=owner):
        require_not_listed(asked, LISTED)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([5, 6, 7], id="between theirs"),
        pytest.param([0, 30], id="around theirs"),
        pytest.param([21, 22], id="behind theirs"),
        pytest.param([], id="none"),
    ],
)
def test_nobody_has_the_others(asked: list[int]) -> None:
    require_not_listed(asked, LISTED)


def test_who_is_not_shown_yet_may_have_ended() -> None:
    require_not_listed([3], replace(LISTED, unshown=frozenset({name_of("first")})))
