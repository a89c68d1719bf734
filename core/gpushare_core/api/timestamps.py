"""Times as the Kubernetes API writes them."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Returns ``moment`` in UTC with whole seconds, as ``metav1.Time`` is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
