"""How the Lease of an extender is read."""

from gpushare_core.api.names import CALLED_PORT_ANNOTATION, OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.audit.extender_report import decode_reports
from gpushare_core.text.json_object import Json
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.cluster.object_parts import read_time
from gpushare_operator.cluster.objects import CallsObject


def read_calls(body: Json) -> CallsObject:
    """The time is the API server's, whatever the host's clock."""
    metadata = body["metadata"]
    annotations = metadata.get("annotations") or {}
    written = [read_time(entry.get("time")) for entry in metadata.get("managedFields") or ()]
    port = annotations.get(CALLED_PORT_ANNOTATION, "")
    return CallsObject(
        name=metadata["name"],
        port=whole_number(port),
        by=str((body.get("spec") or {}).get("holderIdentity") or ""),
        at=max((time for time in written if time), default=None) if port else None,
        reports=tuple(report for _, report in sorted(decode_reports(annotations).items())),
        other_schedulers=annotations.get(OTHER_SCHEDULERS_ANNOTATION, ""),
    )
