"""Jobs of hostctl whose pods somebody has added a container to: one that never ends keeps the Job open."""

from collections.abc import Iterator

from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.actions import RecordResult


def record_results(snapshot: ClusterSnapshot) -> Iterator[RecordResult]:
    """Yields what has Jobs remember how hostctl itself ended: at its deadline such a Job fails, and its pod
    is gone."""
    for job in snapshot.jobs.values():
        pod = snapshot.pod_of_job(job.name)
        if pod and pod.is_held_open and pod.exit_code is not None and job.result is None and not job.deleting:
            yield RecordResult(job.name, job.uid, pod.exit_code)
