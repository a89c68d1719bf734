"""What a condition will say, before it gets its times."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """One condition of a policy."""

    kind: str
    status: bool
    reason: str
    message: str


def holds(kind: str, reason: str, message: str) -> Verdict:
    return Verdict(kind, status=True, reason=reason, message=message)


def fails(kind: str, reason: str, message: str) -> Verdict:
    return Verdict(kind, status=False, reason=reason, message=message)
