"""Turns actions into requests to the API server. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from gpushare_core.api.names import API_VERSION, NODE_KIND
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_core.text.printable import MESSAGE_BYTES, printable
from gpushare_operator import actions
from gpushare_operator.cluster import kinds
from gpushare_operator.cluster.labels import COMPARE_LABEL, RESULT_ANNOTATION
from gpushare_operator.cluster.objects import Excess
from gpushare_operator.desired.pod_template import to_be_compared
from gpushare_operator.desired.share_nodes import share_node_patch


class Verb(Enum):
    APPLY = auto()
    MERGE = auto()
    CREATE = auto()
    DELETE = auto()


@dataclass(frozen=True, slots=True)
class ActionRequest:
    verb: Verb
    kind: kinds.Kind[Any] | None
    """Of the object that the response is; None where it is none that the operator keeps."""
    path: str
    body: Json = field(default_factory=dict)
    uid: str = ""
    """Of the object that is deleted."""
    may_exist: bool = False
    """Whether an object that is there already is no error."""


KINDS_OF_OWN_OBJECTS: Mapping[type, kinds.Kind[Any]] = {
    actions.ApplyDaemonSet: kinds.DAEMON_SETS,
    actions.DeleteDaemonSet: kinds.DAEMON_SETS,
    actions.ApplyDeployment: kinds.DEPLOYMENTS,
    actions.DeleteDeployment: kinds.DEPLOYMENTS,
    actions.CreateJob: kinds.JOBS,
    actions.RecordResult: kinds.JOBS,
    actions.DeleteJob: kinds.JOBS,
    actions.ApplyVolcanoBackup: kinds.VOLCANO_BACKUPS,
    actions.DeleteVolcanoBackup: kinds.VOLCANO_BACKUPS,
}
"""Of objects in the operator's namespace."""


def action_requests(action: actions.Action, namespace: str) -> Iterable[ActionRequest]:
    """Returns the requests of ``action`` in their order; ``namespace``: the operator's.

    A uid in the metadata makes sure that a new object of the same name is not taken for the old one.
    """
    if kind := KINDS_OF_OWN_OBJECTS.get(type(action)):
        return _own_object_requests(action, kind, kind.path(namespace))
    match action:
        case actions.SetFinalizers() | actions.MarkPolicy():
            return [_policy_request(action)]
        case actions.ApplyShareNode() | actions.DeleteShareNode() | actions.DoubtShareNode():
            return [_share_node_request(action)]
        case (
            actions.LabelNode() | actions.ClearCapacity() | actions.SetCounts() | actions.RemoveStartupTaint()
        ):
            return [_node_request(action)]
        case actions.EvictPod():
            return [_eviction_request(action.excess)]
        case _:
            raise TypeError(f"no way to perform {action!r}")


def _policy_request(action: actions.SetFinalizers | actions.MarkPolicy) -> ActionRequest:
    metadata: Json
    if isinstance(action, actions.SetFinalizers):
        metadata = {"finalizers": list(action.finalizers), "resourceVersion": action.resource_version}
    else:
        labels, annotations = dict(action.labels), dict(action.annotations)
        metadata = {"uid": action.uid, "labels": labels, "annotations": annotations}
    return ActionRequest(
        Verb.MERGE, kinds.POLICIES, f"{paths.POLICIES}/{action.policy}", {"metadata": metadata}
    )


def _share_node_request(
    action: actions.ApplyShareNode | actions.DeleteShareNode | actions.DoubtShareNode,
) -> ActionRequest:
    path = f"{paths.SHARE_NODES}/{action.node}"
    if isinstance(action, actions.DeleteShareNode):
        return ActionRequest(Verb.DELETE, kinds.SHARE_NODES, path, uid=action.uid)
    if isinstance(action, actions.DoubtShareNode):
        # By server-side apply: a merge would also replace the other conditions by what was known of them.
        return ActionRequest(Verb.APPLY, kinds.SHARE_NODES, f"{path}/status", _doubtful_status(action))
    # Nobody else writes its spec, so who owns which field says nothing new: server-side apply, which costs
    # the API server half as much again, is not needed.
    if action.uid:
        return ActionRequest(Verb.MERGE, kinds.SHARE_NODES, path, share_node_patch(action.body, action.uid))
    return ActionRequest(Verb.CREATE, kinds.SHARE_NODES, paths.SHARE_NODES, action.body)


def _doubtful_status(action: actions.DoubtShareNode) -> Json:
    conditions = [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": printable(condition.message, max_bytes=MESSAGE_BYTES),
            "lastTransitionTime": rfc3339(action.since),
        }
        for condition in action.conditions
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_KIND,
        "metadata": {"name": action.node, "uid": action.uid},
        "status": {"conditions": conditions},
    }


def _node_request(
    action: actions.LabelNode | actions.ClearCapacity | actions.SetCounts | actions.RemoveStartupTaint,
) -> ActionRequest:
    path, metadata = f"{paths.NODES}/{action.node}", dict[str, Any](uid=action.uid)
    body: Json = {"metadata": metadata}
    match action:
        case actions.LabelNode():
            metadata["labels"] = dict(action.labels)
            if action.annotations:
                metadata["annotations"] = dict(action.annotations)
        case actions.RemoveStartupTaint():
            metadata["resourceVersion"] = action.resource_version
            body["spec"] = {"taints": list(action.others)}
        case _:
            amounts: Mapping[str, str | None] = (
                dict.fromkeys(action.resources)
                if isinstance(action, actions.ClearCapacity)
                else {name: str(count) for name, count in action.counts.items()}
            )
            path, body["status"] = f"{path}/status", {"capacity": amounts, "allocatable": amounts}
    return ActionRequest(Verb.MERGE, kinds.NODES, path, body)


def _eviction_request(excess: Excess) -> ActionRequest:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": excess.pod, "namespace": excess.namespace},
        "deleteOptions": {"preconditions": {"uid": excess.uid}},
    }
    path = f"{paths.pod_path(excess.namespace, excess.pod)}/eviction"
    return ActionRequest(Verb.CREATE, None, path, body)


def _own_object_requests(
    action: actions.Action, kind: kinds.Kind[Any], collection: str
) -> Iterator[ActionRequest]:
    """A workload is applied with the label ``COMPARE_LABEL``, then the label is taken off.

    As long as a workload has that label and the operator's Deployment is not there, nobody can change it, the
    garbage collector included. It is taken off by a merge: an apply would leave a label that others have set.
    """
    match action:
        case actions.CreateJob():
            yield ActionRequest(Verb.CREATE, kind, collection, action.body, may_exist=True)
        case actions.RecordResult():
            metadata = {"uid": action.uid, "annotations": {RESULT_ANNOTATION: str(action.exit_code)}}
            yield ActionRequest(Verb.MERGE, kind, f"{collection}/{action.name}", {"metadata": metadata})
        case actions.ApplyVolcanoBackup():
            yield ActionRequest(Verb.APPLY, kind, f"{collection}/{action.name}", action.body)
        case actions.ApplyDaemonSet() | actions.ApplyDeployment():
            path, without_label = f"{collection}/{action.name}", {"labels": {COMPARE_LABEL: None}}
            yield ActionRequest(Verb.APPLY, kind, path, to_be_compared(action.body))
            yield ActionRequest(Verb.MERGE, kind, path, {"metadata": without_label})
        case actions.Deletion():
            yield ActionRequest(Verb.DELETE, kind, f"{collection}/{action.name}", uid=action.uid)


def changes_known_object(action: actions.Action) -> bool:
    """Returns whether ``action`` changes an object that was there: only its being gone can prevent that."""
    if isinstance(action, actions.ApplyShareNode):
        return bool(action.uid)
    of_policy = actions.SetFinalizers | actions.MarkPolicy
    of_node = actions.LabelNode | actions.ClearCapacity | actions.SetCounts | actions.RemoveStartupTaint
    others = actions.DoubtShareNode | actions.RecordResult | actions.EvictPod
    return isinstance(action, of_policy | of_node | others)
