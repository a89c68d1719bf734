"""Reads what decides whether gpushare can be used; what cannot be read is said, and the rest goes on."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from gpushare_cli.decide.objects.installed import InstalledDeployment
from gpushare_cli.decide.preflight import facts as parts
from gpushare_cli.decide.preflight.cards import has_cards
from gpushare_cli.decide.preflight.facts import KubeletAnswers, PreflightFacts, PreflightInstallation
from gpushare_cli.decide.preflight.objects import (
    BesideObject,
    KubeSchedulerPod,
    ObservedDaemonSet,
    ObservedRuntimeClass,
    PreflightNode,
)
from gpushare_cli.decide.problems.facts import KUBERNETES, OPERATOR_DEPLOYMENT, UnreadPart
from gpushare_cli.gather.preflight.kubelets import ask_kubelets
from gpushare_cli.gather.preflight.rights import installing_rights
from gpushare_cli.gather.status_facts import OPERATOR, PartReader, ServerVersion
from gpushare_cli.output.progress import ProgressLine
from gpushare_core.api.names import NAMESPACE
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import (
    ADMISSION,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    OWN_GROUP,
    RUNTIME_CLASSES,
    SERVER_VERSION,
    namespace_path,
    pods,
    quotas,
)
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import ListResponse

SYSTEM = "kube-system"
SCHEDULER_LABELS = ("component=kube-scheduler", "k8s-app=kube-scheduler")
"""Of kubeadm and RKE2; of Talos."""
OPENSHIFT, OPENSHIFT_LABEL = "openshift-kube-scheduler", "app=openshift-kube-scheduler"
PAGE, MAX_PAGES = 250, 8
"""DaemonSets are read in so many pages at most."""


class _ServedVersion(Struct):
    version: str = ""


class _ServedGroup(Struct):
    versions: list[_ServedVersion] | None = None


class _ServedKind(Struct):
    name: str = ""


class _ServedKinds(Struct):
    resources: list[_ServedKind] | None = None


async def read_preflight_facts(
    client: KubeClient, progress: ProgressLine, *, kubelet_seconds: float
) -> PreflightFacts:
    """Waits ``kubelet_seconds`` for a kubelet. Raises ``CannotLookError`` where there is no API server."""
    progress.doing("reading nodes, DaemonSets and what the API server serves")
    reader = PartReader(client)
    cluster, own = await asyncio.gather(_cluster(reader), _installation(reader))
    progress.doing("asking some kubelets")
    kubelets = await _kubelets(client, cluster, kubelet_seconds)
    return replace(cluster, kubelets=kubelets, own=own, unread=_one_a_part(reader.unread))


async def _cluster(reader: PartReader) -> PreflightFacts:
    version, nodes, schedulers, admission, sets, classes = await asyncio.gather(
        reader.one(KUBERNETES, SERVER_VERSION, ServerVersion),
        reader.list(parts.NODES, NODES, PreflightNode),
        _schedulers(reader),
        _admission(reader),
        _daemon_sets(reader),
        reader.list(parts.RUNTIME_CLASSES, RUNTIME_CLASSES, ObservedRuntimeClass),
    )
    return PreflightFacts(
        kubernetes=version.git_version if version else "",
        nodes=nodes or (),
        schedulers=schedulers,
        admission=admission,
        daemon_sets=sets,
        runtime_classes=classes or (),
    )


async def _schedulers(reader: PartReader) -> list[KubeSchedulerPod]:
    places = [(SYSTEM, label) for label in SCHEDULER_LABELS] + [(OPENSHIFT, OPENSHIFT_LABEL)]
    found = await asyncio.gather(
        *(
            reader.list(parts.SCHEDULERS, pods(namespace), KubeSchedulerPod, labelSelector=label)
            for namespace, label in places
        )
    )
    by_name = {pod.metadata.name: pod for listed in found for pod in listed or ()}
    return list(by_name.values())


async def _admission(reader: PartReader) -> dict[str, frozenset[str]]:
    group = await reader.one(parts.ADMISSION_KINDS, ADMISSION, _ServedGroup)
    versions = [served.version for served in (group.versions if group else None) or ()]
    kinds = await asyncio.gather(
        *(reader.one(parts.ADMISSION_KINDS, f"{ADMISSION}/{version}", _ServedKinds) for version in versions)
    )
    return {
        version: frozenset(kind.name for kind in (served.resources if served else None) or ())
        for version, served in zip(versions, kinds, strict=True)
    }


async def _daemon_sets(reader: PartReader) -> list[ObservedDaemonSet]:
    found: list[ObservedDaemonSet] = []
    params = {"limit": str(PAGE)}
    try:
        for _ in range(MAX_PAGES):
            request = ApiRequest(path=DAEMON_SETS, params=params)
            page = await reader.client.read(request, shape=ListResponse[ObservedDaemonSet])
            found += page.items or ()
            if not page.metadata.next_page:
                break
            params = {**params, "continue": page.metadata.next_page}
        else:
            reason = f"there are more than {PAGE * MAX_PAGES:,}; the rest was not looked at"
            reader.unread.append(UnreadPart(part=parts.DAEMON_SETS, reason=reason))
    except (ApiError, UnreachableError) as error:
        reader.note(parts.DAEMON_SETS, error)
    return found


async def _kubelets(client: KubeClient, facts: PreflightFacts, seconds: float) -> KubeletAnswers:
    """Those with cards come first: a policy is for them."""
    nodes: Sequence[PreflightNode] = sorted(facts.nodes, key=lambda node: not has_cards(node))
    return await ask_kubelets(
        client,
        cgroups_of=[node.name for node in nodes],
        static_pods_of=sorted({pod.node for pod in facts.schedulers if pod.is_static}),
        seconds=seconds,
    )


async def _installation(reader: PartReader) -> PreflightInstallation:
    group, deployments = await asyncio.gather(
        reader.one(parts.OWN_KINDS, OWN_GROUP, _ServedGroup),
        reader.list(OPERATOR_DEPLOYMENT, DEPLOYMENTS, InstalledDeployment, labelSelector=OPERATOR),
    )
    deployment = next(iter(deployments or ()), None)
    name = deployment.metadata.namespace if deployment else NAMESPACE
    namespace, limits, rights = await asyncio.gather(
        reader.one(parts.OWN_NAMESPACE, namespace_path(name), BesideObject),
        reader.list(parts.OWN_QUOTAS, quotas(name), BesideObject),
        _rights(reader, name),
    )
    return PreflightInstallation(
        has_crds=group is not None,
        deployment=deployment,
        namespace=name,
        namespace_object=namespace,
        quotas=limits or (),
        rights=rights,
    )


async def _rights(reader: PartReader, namespace: str) -> dict[str, bool]:
    try:
        return await installing_rights(reader.client, namespace=namespace)
    except (ApiError, UnreachableError) as error:
        reader.note(parts.RIGHTS, error)
        return {}


def _one_a_part(unread: Sequence[UnreadPart]) -> list[UnreadPart]:
    """Some parts are read by several requests, which are refused for the same reason."""
    return list({part.part: part for part in reversed(unread)}.values())[::-1]
