"""Reads what there is to know of a pod that is not there yet."""

from dataclasses import replace
from datetime import datetime

from gpushare_cli.decide.scheduling.node_rules import HOSTNAME
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.gather.why.admission import admitted
from gpushare_cli.gather.why.situation import read_situation
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json


async def read_manifest_situation(client: KubeClient, pod: Json, *, now: datetime) -> PodSituation:
    """Raises ``CannotLookError`` where ``pod`` is none."""
    admission = await admitted(client, pod)
    node = str(admission.pod["spec"].get("nodeName") or "")
    placed = _selecting(admission.pod, node) if node else admission.pod
    situation = await read_situation(client, placed, exists=False, now=now)
    unread = {"what the API server makes of the pod": admission.unread} if admission.unread else {}
    cluster = replace(
        situation.cluster,
        refusal=admission.refusal,
        written_node=node,
        unread={**situation.cluster.unread, **unread},
    )
    return replace(situation, cluster=cluster)


def _selecting(pod: Json, node: str) -> Json:
    """Returns ``pod`` as one that may go to ``node`` alone: taints do not count for who names the node."""
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    selecting = {"nodeSelector": {HOSTNAME: node}, "tolerations": [{"operator": "Exists"}]}
    return {**pod, "spec": {**spec, **selecting}}
