"""What the files on a node say: installed, absent or drifted."""

from dataclasses import replace

import pytest
from tests.samples.hostctl import FRESH, KUBEADM, file, performed, planned, process, snapshot_of

from gpushare_hostctl.decide.run import plan
from gpushare_hostctl.decide.run.snapshot import HostSnapshot
from gpushare_hostctl.decide.run.status import read_status


@pytest.mark.parametrize(
    ("snapshot", "state", "message"),
    [
        pytest.param(FRESH, "Absent", "nothing of gpushare's", id="never installed"),
        pytest.param(snapshot_of(None), "Absent", "there is no", id="no manifest"),
        pytest.param(performed(planned(FRESH)), "Installed", "as written", id="installed"),
        pytest.param(
            snapshot_of(planned(FRESH).manifest.content),
            "Drifted",
            "state.json is missing",
            id="the record is gone",
        ),
        pytest.param(
            replace(performed(planned(FRESH)), manifest=file(KUBEADM)),
            "Drifted",
            "not the one",
            id="rewritten",
        ),
        pytest.param(
            replace(performed(planned(FRESH)), manifest=None),
            "Drifted",
            "is missing",
            id="the manifest is gone",
        ),
        pytest.param(
            performed(
                planned(FRESH), stored=plan.write_ahead_record(FRESH, planned(FRESH), before=process())
            ),
            "Drifted",
            "not finished",
            id="under way",
        ),
    ],
)
def test_the_status_says_what_is_out_of_place(snapshot: HostSnapshot, state: str, message: str) -> None:
    status = read_status(snapshot)

    assert status.state == state
    assert message in status.message
