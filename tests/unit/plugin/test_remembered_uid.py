"""Whose the units of an ordinary init container are where its pod has no mirror and no other units."""

import pytest
from tests.samples.plugin import assigned, layout, name_of, stored

from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_identity import identify


@pytest.mark.parametrize(
    ("remembered", "listed", "uid"),
    [
        pytest.param("uid-a", [], "uid-a", id="as another process has recorded it"),
        pytest.param("former", [], "", id="of which the checkpoint tells nothing"),
        pytest.param("uid-a", [5], "", id="the kubelet has units of another one"),
    ],
)
def test_a_static_pod_without_mirror_is_known_by_what_is_remembered(
    remembered: str, listed: list[int], uid: str
) -> None:
    entries = [*stored(layout(), a={"init": [0]})["uid-a"].values()]
    found = identify(
        assigned(a={"main": listed}), entries, AssignedDevices(), {}, remembered={name_of("a"): remembered}
    )
    assert found.pods[name_of("a")].uid == uid
    assert found.stored.keys() == ({uid} if uid else set())
