"""How hostctl's Jobs are read."""

import json
import re

from gpushare_core.api.names import VERSION_LABEL
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.whole_number import is_number, whole_number
from gpushare_operator.cluster.labels import (
    ASKED_ANNOTATION,
    COMMAND_LABEL,
    DRIFT_ANNOTATION,
    ENGINE_ANNOTATION,
    HASH_ANNOTATION,
    INPUTS_ANNOTATION,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    PORT_ANNOTATION,
    RENEW_ANNOTATION,
    RESULT_ANNOTATION,
    ROLLED_BACK_ANNOTATION,
    SEQUENCE_LABEL,
    read_ports,
)
from gpushare_operator.cluster.object_parts import is_deleting, read_time, true_condition
from gpushare_operator.cluster.objects import JobObject


def read_job(body: Json) -> JobObject:
    metadata, status = body["metadata"], body.get("status", {})
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    failing = true_condition(status, "FailureTarget")
    failure = true_condition(status, "Failed")
    end = failure or true_condition(status, "Complete")
    return JobObject(
        name=metadata["name"],
        uid=metadata["uid"],
        command=labels.get(COMMAND_LABEL, ""),
        node=annotations.get(NODE_ANNOTATION, ""),
        node_uid=annotations.get(NODE_UID_ANNOTATION, ""),
        sequence=whole_number(labels.get(SEQUENCE_LABEL, "")),
        spec_hash=annotations.get(HASH_ANNOTATION, ""),
        inputs_hash=annotations.get(INPUTS_ANNOTATION, ""),
        rolled_back_inputs=annotations.get(ROLLED_BACK_ANNOTATION, ""),
        extender_ports=read_ports(annotations.get(PORT_ANNOTATION, "")),
        asked=_asked(annotations.get(ASKED_ANNOTATION, "")),
        renew_after=read_time(annotations.get(RENEW_ANNOTATION)),
        engine=annotations.get(ENGINE_ANNOTATION, ""),
        has_drifted=DRIFT_ANNOTATION in annotations,
        result=_result(annotations.get(RESULT_ANNOTATION, "")),
        exit_code=_exit_code((failure or failing or {}).get("message", "")),
        deleting=is_deleting(body),
        complete=end is not None and failure is None,
        failed=failure is not None,
        failing=failing is not None and end is None,
        failure=(failure or failing or {}).get("reason", ""),
        finished=read_time((end or failing or {}).get("lastTransitionTime")),
        version=labels.get(VERSION_LABEL, ""),
    )


def _asked(text: str) -> frozenset[str]:
    try:
        return frozenset(json.loads(text)) if text else frozenset()
    except (*UNREADABLE_JSON, TypeError):
        return frozenset()


def _result(text: str) -> int | None:
    return whole_number(text) if is_number(text) else None


def _exit_code(message: str) -> int | None:
    """Source: the Job controller's message for ``FailJob``."""
    match = re.search(r"failed with exit code ([0-9]{1,5}) matching", message)
    return int(match[1]) if match else None
