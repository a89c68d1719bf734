"""Asks a few kubelets, through the API server, what no object of the API says."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct, field

from gpushare_cli.decide.preflight.facts import KubeletAnswers
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError, WatchEventTooLargeError
from gpushare_core.kube.paths import kubelet_path
from gpushare_core.kube.request import ApiRequest

MAX_ASKED = 8
"""Nodes whose version of cgroups is asked for; metrics of a kubelet are some hundred KiB."""
KUBELET_SECONDS = 5.0
"""For an answer, where nobody says how long: a node that is away must not hold the others up."""
CGROUP_METRICS = {b"kubelet_cgroup_version %d" % version: version for version in (1, 2)}
"""Lines of a kubelet's metrics. Source: ``pkg/kubelet/metrics`` of Kubernetes, since 1.31."""


class _KubeletSettings(Struct, rename="camel"):
    static_pod_path: str = ""


class _KubeletConfig(Struct):
    settings: _KubeletSettings = field(name="kubeletconfig", default_factory=_KubeletSettings)


async def ask_kubelets(
    client: KubeClient, *, cgroups_of: Sequence[str], static_pods_of: Sequence[str], seconds: float
) -> KubeletAnswers:
    """Asks at most ``MAX_ASKED`` of each; what does not answer within ``seconds`` is left out, with the first
    reason."""
    asked, hosts = cgroups_of[:MAX_ASKED], static_pods_of[:MAX_ASKED]
    versions, folders = await asyncio.gather(
        asyncio.gather(*(_cgroup_version(client, node, seconds) for node in asked)),
        asyncio.gather(*(_static_pod_folder(client, node, seconds) for node in hosts)),
    )
    return KubeletAnswers(
        cgroups={node: said for node, said in zip(asked, versions, strict=True) if isinstance(said, int)},
        static_pods={node: said for node, said in zip(hosts, folders, strict=True) if said is not None},
        refusal=next((said for said in versions if isinstance(said, str)), ""),
    )


async def _cgroup_version(client: KubeClient, node: str, seconds: float) -> int | str:
    """Returns the version that the kubelet has found, or why it is not known."""
    request = ApiRequest(path=kubelet_path(node, "metrics"), accept="text/plain")
    try:
        async with asyncio.timeout(seconds):
            lines = [line async for line in client.stream(request, idle=seconds)]
    except (ApiError, UnreachableError, WatchEventTooLargeError, TimeoutError) as error:
        return _refusal(node, error, seconds)
    versions = (CGROUP_METRICS[line] for line in lines if line in CGROUP_METRICS)
    return next(versions, None) or f"the kubelet of {node} does not say it"


async def _static_pod_folder(client: KubeClient, node: str, seconds: float) -> str | None:
    request = ApiRequest(path=kubelet_path(node, "configz"), timeout=seconds)
    try:
        return (await client.read(request, shape=_KubeletConfig)).settings.static_pod_path
    except (ApiError, UnreachableError):
        return None


def _refusal(node: str, error: Exception, seconds: float) -> str:
    if isinstance(error, ApiError) and error.is_forbidden:
        return "you may not ask kubelets (get nodes/proxy)"
    if isinstance(error, TimeoutError):
        return f"the kubelet of {node} did not answer within {seconds:g} s"
    return f"the kubelet of {node} did not answer: {error}"
