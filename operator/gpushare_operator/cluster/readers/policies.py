"""How a GPUSharePolicy is read."""

from typing import Any

import msgspec
from pydantic import ValidationError

from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import (
    LEAVE_ISOLATION_FILES_ANNOTATION,
    LET_GO_ANNOTATION,
    RETRY_ANNOTATION,
    read_marks,
)
from gpushare_operator.cluster.object_parts import is_deleting
from gpushare_operator.cluster.objects import PolicyObject


def read_policy(body: Json) -> PolicyObject:
    metadata = body["metadata"]
    annotations = metadata.get("annotations") or {}
    spec, error = _policy_spec(body)
    return PolicyObject(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion", ""),
        generation=metadata.get("generation", 1),
        created=metadata.get("creationTimestamp", ""),
        deleting=is_deleting(body),
        finalizers=tuple(metadata.get("finalizers", ())),
        retry=annotations.get(RETRY_ANNOTATION, ""),
        let_go=_names(annotations.get(LET_GO_ANNOTATION, "")),
        leaves_isolation_files=annotations.get(LEAVE_ISOLATION_FILES_ANNOTATION) == "true",
        marks=read_marks(metadata.get("labels") or {}, annotations),
        spec=spec,
        error=error,
        status=_policy_status(body),
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",")) - {""}


def _policy_spec(body: Json) -> tuple[PolicySpec | None, str]:
    """Returns the spec, or None and what is wrong."""
    try:
        return PolicySpec.model_validate(body.get("spec")), ""
    except ValidationError as error:
        return None, "; ".join(_location_and_message(detail) for detail in error.errors()[:3])


def _location_and_message(detail: Any) -> str:
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"


def _policy_status(body: Json) -> PolicyStatus:
    try:
        return msgspec.convert(body.get("status") or {}, PolicyStatus)
    except msgspec.ValidationError:
        return PolicyStatus()
