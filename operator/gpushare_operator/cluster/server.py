"""The API server's version; kinds, rights and pods on which a kube-scheduler of our own depends.

Whether there is a kind does not follow from the version: beta kinds may be switched on or off.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpushare_core.api.names import (
    EXTENDER_LEASE,
    GROUP,
    KUBE_SCHEDULER_USER,
    NODE_PLURAL,
)
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.cluster.api_reader import ApiReader
from gpushare_operator.cluster.objects import ReadResult, ServerFacts
from gpushare_operator.cluster.readers.pods import read_pod_without_scheduler

POD_POLICY = "gpushare-scheduler"
"""Name of the MutatingAdmissionPolicy, and of its binding."""
POLICY_KINDS = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
MAX_PODS = 100
"""A condition counts them, and names a few."""

_log = logging.getLogger(__name__)

_VERSION = re.compile(r"v[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}")
VERSION_SETTLES = timedelta(minutes=5)
"""After an upgrade: for so long no replica may have reported the older version."""


@dataclass(slots=True)
class ServerVersions:
    """Versions that replicas of the API server have lately reported.

    During an upgrade the version differs from call to call. kube-scheduler may not be newer than any replica,
    and must not be rolled out anew with every call.
    """

    _reported: dict[str, datetime] = field(default_factory=dict)
    """Version -> when it was last reported."""
    _has_begun: bool = False

    def lowest(self, version: str, now: datetime, *, in_force: str = "") -> str:
        """Returns the lowest version of the last ``VERSION_SETTLES``, with ``version`` reported at ``now``;
        empty when there is none.

        ``in_force``: the version that our kube-scheduler follows. It counts as reported when an operator
        begins: where that is in the middle of an upgrade some replicas may still have it.
        """
        if version and not self._has_begun:
            self._has_begun = True
            if in_force and _minors_between(in_force, version) in (0, 1):
                self._reported[in_force] = now
        # The clock may be set back.
        last = {seen: min(moment, now) for seen, moment in self._reported.items()}
        self._reported = {seen: moment for seen, moment in last.items() if now - moment < VERSION_SETTLES}
        if version:
            self._reported[version] = now
        return min(self._reported, key=_order, default="")


def _order(version: str) -> list[int]:
    return [whole_number(part) for part in version.removeprefix("v").split(".")]


def version_in_force(own: Iterable[str], of_hosts: Iterable[str]) -> str:
    """Returns the version of the API server that our kube-schedulers were made for, by the tags of their
    images; the newest one where they differ, as during a change of it; empty where there is none.

    ``own``: images of the second kube-scheduler; ``of_hosts``: of the cluster's own ones, which follow us
    only where we gave them an image.
    """
    images = [*own]
    found = {
        *map(_version_of_kubernetes, images),
        *map(_version_of_ours, [*images, *of_hosts]),
    }
    return max(filter(None, found), key=_order, default="")


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def _version_of_kubernetes(image: str) -> str:
    """Returns it of an image of Kubernetes, such as ``v1.36.3``; empty of others."""
    found = _VERSION.match(_tag(image))
    return found[0] if found else ""


def _version_of_ours(image: str) -> str:
    """Returns it of an image such as ``0.1.0-1.36``, which is for every patch version; empty of others."""
    found = re.search(r"-([0-9]{1,9}\.[0-9]{1,9})$", _tag(image))
    return f"v{found[1]}.0" if found else ""


def _minors_between(older: str, newer: str) -> int | None:
    (major, minor, *_), (new_major, new_minor, *_) = _order(older), _order(newer)
    return new_minor - minor if major == new_major else None


async def read_kubernetes(api: ApiReader) -> str:
    """Returns the version of the replica that answers; empty where it does not say it."""
    try:
        return read_server_version(await api.get(paths.SERVER_VERSION))
    except ApiError as error:
        _log.warning("cannot read the version of the API server: %s", error)
        return ""


async def read_server_facts(api: ApiReader, absent_scheduler: str) -> ServerFacts:
    """``absent_scheduler``: ``schedulerName`` of pods that no scheduler places by cards."""
    return ServerFacts(
        pod_policy=await _read_pod_policy(api),
        pods_without_scheduler=await _read_pods_without_scheduler(api, absent_scheduler),
        absent_scheduler=absent_scheduler,
    )


def read_server_version(body: Json) -> str:
    """Returns the tag of images of that version; what providers add to it is no part of any.

    Source: ``k8s.io/apimachinery/pkg/version.Info``, such as ``v1.31.5-gke.1233000``.
    """
    match = re.match(_VERSION, str(body.get("gitVersion", "")))
    return match[0] if match else ""


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
    """Returns the newest version in which the server has both kinds; empty when there is none."""
    group = await api.get(paths.ADMISSION)
    for version in (served["version"] for served in group.get("versions") or ()):
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


def needed_rights(namespace: str) -> list[Json]:
    """Returns the rights besides those that Kubernetes gives the user, as ``resourceAttributes``.

    ``namespace`` is that of gpushare.
    """
    lease = {"group": "coordination.k8s.io", "resource": "leases", "name": EXTENDER_LEASE}
    return [
        *({"group": GROUP, "resource": NODE_PLURAL, "verb": verb} for verb in ("list", "watch")),
        {"group": GROUP, "resource": "allocations", "verb": "create"},
        *({**lease, "namespace": namespace, "verb": verb} for verb in ("get", "update", "create")),
    ]


async def read_scheduler_rights(api: ApiReader, namespace: str) -> ReadResult:
    """Returns MISSING when the user lacks a right, FORBIDDEN when the operator may not ask. Raises
    ``ApiError``."""
    try:
        for right in needed_rights(namespace):
            review = await api.create(paths.SUBJECT_REVIEWS, _review(right))
            if (review.get("status") or {}).get("allowed") is not True:
                return ReadResult.MISSING
    except ApiError as error:
        if not error.is_forbidden:
            raise
        return ReadResult.FORBIDDEN
    return ReadResult.FOUND


def _review(right: Json) -> Json:
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": KUBE_SCHEDULER_USER,
            "groups": ["system:authenticated"],
            "resourceAttributes": right,
        },
    }
