"""What the API server says of itself, and of pods that no kube-scheduler of ours places.

What it serves is asked, never concluded from its version: beta kinds may be switched on or off.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.cluster.api_reader import ApiReader
from gpushare_operator.cluster.objects import ReadResult, ServerFacts
from gpushare_operator.cluster.readers import read_pod_without_scheduler, read_server_version

POD_POLICY = "gpushare-scheduler"
"""Name of the MutatingAdmissionPolicy, and of its binding."""
POLICY_KINDS = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
MAX_PODS = 100
"""Pods that are read at most: a condition counts them, and names a few."""


VERSION_SETTLES = timedelta(minutes=5)
"""After an upgrade: so long nobody may have said the older version."""


@dataclass(slots=True)
class ServerVersions:
    """Which versions replicas of the API server have lately said.

    While they are upgraded it differs from call to call. kube-scheduler may not be newer than any of them,
    and must not be rolled out anew with every call.
    """

    _said: dict[str, datetime] = field(default_factory=dict)
    """Version -> when somebody said it last."""

    def lowest(self, version: str, now: datetime) -> str:
        """Returns the lowest that was said since ``VERSION_SETTLES`` before ``now``, when it was ``version``;
        empty when none was."""
        last = {each: min(moment, now) for each, moment in self._said.items()}  # the clock may be set back
        self._said = {each: moment for each, moment in last.items() if now - moment < VERSION_SETTLES}
        if version:
            self._said[version] = now
        return min(self._said, key=_order, default="")


def _order(version: str) -> list[int]:
    return [whole_number(part) for part in version.removeprefix("v").split(".")]


async def read_server_facts(api: ApiReader, absent_scheduler: str) -> ServerFacts:
    """Returns what the server says; ``absent_scheduler`` is the ``schedulerName`` of pods that nobody places by
    cards."""
    return ServerFacts(
        version=read_server_version(await api.get(paths.SERVER_VERSION)),
        pod_policy=await _read_pod_policy(api),
        pods_without_scheduler=await _read_pods_without_scheduler(api, absent_scheduler),
        absent_scheduler=absent_scheduler,
    )


async def _read_pod_policy(api: ApiReader) -> ReadResult:
    version = await _version_of_policies(api)
    if not version:
        return ReadResult.NOT_SERVED
    try:
        for kind in POLICY_KINDS:
            await api.get(f"{paths.ADMISSION}/{version}/{kind}/{POD_POLICY}")
    except ApiError as error:
        return _outcome(error)
    return ReadResult.FOUND


async def _version_of_policies(api: ApiReader) -> str:
    """Returns the first version, the newest, in which the server has both kinds; empty when it has not."""
    group = await api.get(paths.ADMISSION)
    for version in (each["version"] for each in group.get("versions") or ()):
        resources = (await api.get(f"{paths.ADMISSION}/{version}")).get("resources") or ()
        if {resource["name"] for resource in resources} >= {*POLICY_KINDS}:
            return str(version)
    return ""


async def _read_pods_without_scheduler(api: ApiReader, absent_scheduler: str) -> tuple[str, ...] | None:
    selector = f"spec.nodeName=,status.phase=Pending,spec.schedulerName={absent_scheduler}"
    found: list[str] = []
    try:
        async for page in api.pages(paths.PODS, limit=MAX_PODS, field_selector=selector):
            found += filter(None, map(read_pod_without_scheduler, page.items))
            if len(found) >= MAX_PODS:
                break
    except ApiError as error:
        if not error.is_forbidden:
            raise
        return None
    return tuple(sorted(found))


def _outcome(error: ApiError) -> ReadResult:
    if error.is_not_found:
        return ReadResult.MISSING
    if error.is_forbidden:
        return ReadResult.FORBIDDEN
    raise error
