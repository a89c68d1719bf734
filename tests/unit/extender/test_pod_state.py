"""Which pods a kubelet rejected because of our resource, by what it writes into their status."""

import msgspec
import pytest
from tests.samples.extender import RESOURCE, container_json, pod_json

from gpushare_core.text.json_object import Json
from gpushare_extender.decide.pod_state import PodState, rejection_for


def rejected(
    reason: str, message: str = "", *, phase: str = "Failed", others: Json | None = None
) -> PodState:
    """``others``: limits besides ours."""
    pod = pod_json("a", node="n1")
    pod["status"] = {"phase": phase, "reason": reason, "message": f"Pod was rejected: {message}"}
    pod["spec"]["initContainers"] = [container_json("first")]
    pod["spec"]["initContainers"][0]["resources"]["limits"] |= others or {}
    return msgspec.convert(pod, PodState)


def allocate_failed(why: str) -> str:
    """As ``unexpectedAdmissionError`` writes it."""
    return f"Allocate failed due to {why}, which is unexpected"


OURS = [
    pytest.param(
        f"requested number of devices unavailable for {RESOURCE}. Requested: 4, Available: 0", id="few"
    ),
    pytest.param(f"cannot allocate unregistered device {RESOURCE}", id="not registered"),
    pytest.param(f"no healthy devices present; cannot allocate unhealthy devices {RESOURCE}", id="sick"),
    pytest.param(f"endpoint &{{{{{{}} {{0 0}}}} {RESOURCE} 0xc0 <nil>}} has been stopped", id="stopped"),
    pytest.param("rpc error: code = Unavailable desc = connection refused", id="its plugin does not answer"),
    pytest.param(
        "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = ResourceExhausted",
        id="its plugin refuses",
    ),
]

OTHERS = [
    pytest.param(
        "requested number of devices unavailable for example.com/nic. Requested: 1", id="few of another"
    ),
    pytest.param(f"cannot allocate unregistered device {RESOURCE}-bandwidth", id="a longer name"),
    pytest.param(f"cannot allocate unregistered device my.{RESOURCE}", id="another domain"),
    pytest.param(
        "not enough cpus available to satisfy request: requested=4, available=2", id="exclusive CPUs"
    ),
]


@pytest.mark.parametrize("why", OURS)
def test_for_ours(why: str) -> None:
    pod = rejected("UnexpectedAdmissionError", allocate_failed(why))
    assert rejection_for(RESOURCE, pod) == "UnexpectedAdmissionError"


def test_too_few_by_the_kubelets_own_sums() -> None:
    assert rejection_for(RESOURCE, rejected(f"OutOf{RESOURCE}")) == f"OutOf{RESOURCE}"


@pytest.mark.parametrize("why", OTHERS)
def test_for_something_else(why: str) -> None:
    assert rejection_for(RESOURCE, rejected("UnexpectedAdmissionError", allocate_failed(why))) == ""


@pytest.mark.parametrize(
    "reason", ["OutOfcpu", "OutOfexample.com/nic", "TopologyAffinityError", "Evicted", ""]
)
def test_with_another_reason(reason: str) -> None:
    assert rejection_for(RESOURCE, rejected(reason, f"the pod asks for {RESOURCE}")) == ""


def test_whose_plugin_failed_is_not_known_where_a_pod_asks_for_several() -> None:
    message = allocate_failed("rpc error: code = Unavailable desc = connection refused")
    pod = rejected("UnexpectedAdmissionError", message, others={"example.com/nic": "1"})
    assert rejection_for(RESOURCE, pod) == ""


def test_a_pod_that_runs_was_not_rejected() -> None:
    assert rejection_for(RESOURCE, rejected(f"OutOf{RESOURCE}", phase="Running")) == ""
