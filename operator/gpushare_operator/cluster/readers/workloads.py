"""How our DaemonSets and Deployments are read."""

from gpushare_core.api.names import POLICY_LABEL
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.object_parts import is_deleting, read_time
from gpushare_operator.cluster.objects import DaemonSetObject, DeploymentObject


def read_daemon_set(body: Json) -> DaemonSetObject:
    metadata = body["metadata"]
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    return DaemonSetObject(
        name=metadata["name"],
        uid=metadata["uid"],
        policy=metadata.get("labels", {}).get(POLICY_LABEL, ""),
        deleting=is_deleting(body),
        created=read_time(metadata.get("creationTimestamp")),
        body={
            "metadata": {key: metadata[key] for key in kept if key in metadata},
            "spec": body.get("spec", {}),
        },
        managed_fields=_field_owners(metadata),
        outdated=_outdated(metadata.get("generation", 1), body.get("status") or {}),
    )


def _outdated(generation: int, status: Json) -> int:
    """Returns the number of nodes whose pod is not of the present template."""
    updated = status.get("updatedNumberScheduled", 0) if status.get("observedGeneration") == generation else 0
    wanted: int = status.get("desiredNumberScheduled", 0)
    return wanted - updated


def _field_owners(metadata: Json) -> list[Json]:
    """Returns who owns which field, without the status, which changes all the time."""
    return [
        managed_field
        for managed_field in metadata.get("managedFields", ())
        if managed_field.get("subresource") != "status"
    ]


def read_deployment(body: Json) -> DeploymentObject:
    metadata, spec, status = body["metadata"], body.get("spec", {}), body.get("status", {})
    kept = ("name", "namespace", "labels", "annotations")
    is_observed = status.get("observedGeneration", 0) >= metadata.get("generation", 1)
    is_updated = status.get("updatedReplicas", 0) == status.get("replicas", 0) == spec.get("replicas", 1)
    return DeploymentObject(
        name=metadata["name"],
        uid=metadata["uid"],
        deleting=is_deleting(body),
        body={"metadata": {key: metadata[key] for key in kept if key in metadata}, "spec": spec},
        managed_fields=_field_owners(metadata),
        is_rolled_out=is_observed and is_updated and status.get("readyReplicas", 0) > 0,
    )
