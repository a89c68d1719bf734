"""Pods that were bound with more annotations than Kubernetes allows: nobody can write to them any more."""

from collections.abc import Iterator

from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.records import NodeRecords
from gpushare_core.dialects.annotation_room import MAX_BYTES
from gpushare_core.dialects.dialect import Dialect


def unwritable(records: NodeRecords) -> Iterator[Difference]:
    """Yields those with an allocation. An extender of an earlier version bound them, or somebody else."""
    for pod in (records.pods or {}).values():
        is_bound = Dialect.allocation_annotation in pod.annotations and not pod.ended
        if is_bound and pod.annotations_size > MAX_BYTES:
            sentence = (
                f"{pod.key} has {pod.annotations_size} bytes of annotations, and Kubernetes refuses every"
                f" write to a pod with more than {MAX_BYTES}: its kubelet cannot report that it has ended,"
                f" and its cards stay taken; remove annotations: kubectl annotate pod"
                f" -n {pod.key.namespace} {pod.key.name} KEY-"
            )
            yield Difference.of_pod(records, pod.key, DifferenceKind.UNWRITABLE, sentence)
