"""Why pods of ours are not made, by the controllers that try to.

DaemonSets and Jobs have no condition for it, only Events. These are read while pods are missing.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping

from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.api_reader import ApiReader
from gpushare_operator.cluster.labels import MANAGED
from gpushare_operator.cluster.snapshot import ClusterSnapshot

PAGE = 100
MAX_EVENTS = 500
"""That are read: whoever may make Events in our namespace can make any number of them."""
FAILED_CREATE = "reason=FailedCreate"
ERROR_CREATING = "Error creating: "

_log = logging.getLogger(__name__)


async def read_refusals(api: ApiReader, namespace: str, snapshot: ClusterSnapshot) -> Mapping[str, str]:
    """Returns name of a DaemonSet, Deployment or Job -> the last reason why its pods are not made."""
    try:
        refused = dict(_of_deployments(await _all(api, paths.deployments(namespace), label_selector=MANAGED)))
        short = dict(_short(await _all(api, paths.daemon_sets(namespace), label_selector=MANAGED)))
        short.update(_without_pods(snapshot))
        if short:
            events = await _all(api, paths.events(namespace), field_selector=FAILED_CREATE)
            refused.update(_by_events(events, short))
    except ApiError as error:
        if not error.is_forbidden:
            raise
        _log.warning("cannot see why pods are not created: %s", error)
        return {}
    return refused


async def _all(
    api: ApiReader, path: str, *, label_selector: str = "", field_selector: str = ""
) -> list[Json]:
    found: list[Json] = []
    pages = api.pages(path, limit=PAGE, label_selector=label_selector, field_selector=field_selector)
    async for page in pages:
        found += page.items
        if len(found) >= MAX_EVENTS:
            break
    return found


def _short(daemon_sets: Iterable[Json]) -> Iterator[tuple[str, str]]:
    """Yields UID and name of DaemonSets with fewer pods than nodes."""
    for daemon_set in daemon_sets:
        status = daemon_set.get("status") or {}
        if status.get("currentNumberScheduled", 0) < status.get("desiredNumberScheduled", 0):
            yield daemon_set["metadata"]["uid"], daemon_set["metadata"]["name"]


def _without_pods(snapshot: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    for job in snapshot.jobs.values():
        if job.active and snapshot.pod_of_job(job.name) is None:
            yield job.uid, job.name


def _of_deployments(deployments: Iterable[Json]) -> Iterator[tuple[str, str]]:
    for deployment in deployments:
        for condition in (deployment.get("status") or {}).get("conditions") or ():
            if (condition.get("type"), condition.get("status")) == ("ReplicaFailure", "True"):
                yield deployment["metadata"]["name"], str(condition.get("message", ""))


def _by_events(events: Iterable[Json], short: Mapping[str, str]) -> Mapping[str, str]:
    named = ((event, short.get((event.get("regarding") or {}).get("uid", ""))) for event in events)
    known = sorted((_last_seen(event), str(event.get("note", "")), name) for event, name in named if name)
    return {name: _reason(note) for _, note, name in known}


def _reason(note: str) -> str:
    """Returns ``note`` without the pod's name, which is another one at each attempt."""
    return re.sub(r'^pods "[^"]*" is ', "", note.rpartition(ERROR_CREATING)[2])


def _last_seen(event: Json) -> str:
    """Times compare as texts. Kubernetes' controllers write the older kind of Events."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"), event.get("eventTime"))
    return next((str(time) for time in times if time), str(event["metadata"].get("creationTimestamp", "")))
