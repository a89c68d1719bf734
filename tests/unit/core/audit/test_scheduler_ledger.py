"""What kube-scheduler with the plugin shows of cards, as the auditor reads it."""

import pytest

from gpushare_core.audit.readers import read_scheduler_ledger
from gpushare_core.audit.records import PodKey


def test_a_pod_that_only_its_kubelet_has_is_known_by_the_name_in_its_gpusharenode() -> None:
    share = {"namespace": "", "name": "", "uid": "u", "units": 1}
    card = {"uuid": "GPU-0", "units": 16, "allocated": 1, "pods": [share]}
    shown = {"gpushare": {"nodes": [{"name": "gpu-1", "cards": [card]}]}}
    gone = PodKey("default", "gone", "u")
    for names, expected in ({"u": gone}, gone), ({}, PodKey("", "", "u")):
        found = read_scheduler_ledger(shown, names)
        assert found is not None
        assert found["gpu-1"].cards[0].shares[0].pod == expected


def test_what_a_scheduler_shows_is_a_ledger() -> None:
    share = {"namespace": "default", "name": "a", "uid": "u", "units": 10, "reserved": True}
    card = {"uuid": "GPU-0", "units": 16, "allocated": 10, "lock": "memory", "pods": [share]}
    found = read_scheduler_ledger(
        {"gpushare": {"nodes": [{"name": "gpu-1", "unit": "1Gi", "cards": [card]}]}}
    )
    assert found is not None
    ((told,),) = (node.cards for node in found.values())
    assert (told.uuid, told.allocated, told.shares[0].reserved) == ("GPU-0", 10, True)
    assert told.shares[0].pod == PodKey("default", "a", "u")
    assert read_scheduler_ledger({"gpushare": {"nodes": None}}) is None, "it has not read everything yet"
    with pytest.raises(ValueError, match="it has no plugin"):
        read_scheduler_ledger({"componentconfig": {}})
