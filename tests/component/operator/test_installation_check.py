"""``gpushare-operator check``: each thing that may not work is named, with what to do."""

from typing import cast

import pytest

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json
from gpushare_operator import installation_check
from gpushare_operator.installation_check import NotWorkingError, check

PATIENCE = 30.0
"""Seconds: what works takes as long as a busy machine needs."""


class Cluster:
    """An API server, and an operator that renews its Lease whenever somebody has looked."""

    def __init__(self) -> None:
        self.holder: str | None = "operator-1"
        self.renews = True
        self.looks = 0
        self.lease_error: Exception | None = None
        self.answers: dict[str, Exception | None] = {
            "1Gi": None,
            "nothing": ApiError(422, "Invalid", "spec.memoryUnit: Invalid value"),
        }
        self.asked: list[ApiRequest] = []

    async def get(self, path: str) -> Json:
        assert path == paths.lease_path("ns", "gpushare-operator")
        if self.lease_error:
            raise self.lease_error
        self.looks += 1
        renewed = f"2026-11-25T21:00:{self.looks if self.renews else 0:02}.000000Z"
        return {"spec": {"holderIdentity": self.holder, "renewTime": renewed}}

    async def send(self, request: ApiRequest) -> Json:
        self.asked.append(request)
        assert request.body is not None
        if error := self.answers[request.body["spec"]["memoryUnit"]]:
            raise error
        return {}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(installation_check, "LOOK_SECONDS", 0.001)
    return Cluster()


async def checked(cluster: Cluster, *, patience: float = PATIENCE) -> list[str]:
    said: list[str] = []
    await check(cast("KubeClient", cluster), "ns", timeout=patience, report=said.append)
    return said


async def test_what_works_is_said(cluster: Cluster) -> None:
    assert await checked(cluster) == [
        "an operator is at work: operator-1",
        "the API server accepts a valid policy (dry run)",
        "the API server refuses an invalid policy (dry run)",
    ]


async def test_it_changes_nothing(cluster: Cluster) -> None:
    await checked(cluster)
    assert [(request.method, request.path, request.params["dryRun"]) for request in cluster.asked] == [
        ("POST", paths.POLICIES, "All")
    ] * 2


async def test_an_operator_that_no_longer_renews_its_lease_is_not_at_work(cluster: Cluster) -> None:
    """Whatever the Lease says of it: it may have vanished a moment ago."""
    cluster.renews = False
    with pytest.raises(NotWorkingError, match=r"no operator is at work.*describe deployment"):
        await checked(cluster, patience=0.05)


async def test_a_lease_that_nobody_holds_is_nobodys_work(cluster: Cluster) -> None:
    cluster.holder = None
    with pytest.raises(NotWorkingError, match="no operator is at work"):
        await checked(cluster, patience=0.05)


@pytest.mark.parametrize(
    ("unit", "error", "said"),
    [
        pytest.param("1Gi", ApiError(404, "NotFound", "no such kind"), "no such kind", id="no definition"),
        pytest.param("1Gi", UnreachableError("connection refused"), "connection refused", id="no server"),
        pytest.param("nothing", None, "of another version", id="checks nothing"),
        pytest.param("nothing", ApiError(403, "Forbidden", "no right"), "no right", id="refused otherwise"),
        pytest.param("nothing", UnreachableError("timeout"), "timeout", id="gone meanwhile"),
    ],
)
async def test_how_policies_are_answered_is_said(
    cluster: Cluster, unit: str, error: Exception | None, said: str
) -> None:
    cluster.answers[unit] = error
    with pytest.raises(NotWorkingError, match=said):
        await checked(cluster)


async def test_without_a_lease_it_says_so(cluster: Cluster) -> None:
    cluster.lease_error = ApiError(404, "NotFound", "leases not found")
    with pytest.raises(NotWorkingError, match="cannot read the operator's Lease: 404"):
        await checked(cluster)
