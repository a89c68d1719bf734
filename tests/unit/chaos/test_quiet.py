"""Which pods are on their way."""

from typing import Any

import pytest
from chaos.quiet import on_their_way

from gpushare_core.json_object import Json


def pod(phase: str, *, node: str = "gpu-1", deleted: bool = False, **more: Any) -> Json:
    metadata = {"name": "a", **({"deletionTimestamp": "2026"} if deleted else {})}
    spec = {"nodeName": node, "restartPolicy": more.pop("restart", "Always")}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **more}}


REFUSED = [{"type": "PodScheduled", "status": "False"}]


@pytest.mark.parametrize(
    ("body", "doing"),
    [
        pytest.param(pod("Running"), "", id="runs"),
        pytest.param(pod("Running", deleted=True), "ends", id="ends"),
        pytest.param(pod("Running", restart="Never"), "is about to end", id="a Job's"),
        pytest.param(pod("Succeeded"), "", id="ended"),
        pytest.param(pod("Failed"), "", id="failed"),
        pytest.param(pod("Pending"), "starts on gpu-1", id="bound"),
        pytest.param(pod("Pending", node=""), "waits for the scheduler", id="new"),
        pytest.param(pod("Pending", node="", conditions=REFUSED), "", id="waits for room"),
    ],
)
def test_on_their_way(body: Json, doing: str) -> None:
    assert on_their_way([body]) == ([f"pod a {doing}"] if doing else [])
