"""Times as the Kubernetes API and the annotations of pods write them."""

from datetime import UTC, datetime, timedelta


def rfc3339(moment: datetime) -> str:
    """Returns ``moment`` in UTC with whole seconds, as ``metav1.Time`` is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(moment: datetime) -> str:
    """Returns ``moment`` in UTC with microseconds, as ``metav1.MicroTime`` is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_rfc3339(text: str) -> datetime | None:
    """Returns None where ``text`` is no moment with an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def unix_nanoseconds(moment: datetime) -> int:
    """As Go's ``UnixNano``, in whole microseconds."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
