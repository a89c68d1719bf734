"""What can go wrong, by what it asks of the caller."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the program.

    After RETRY running again may help by itself. After NEEDS_PERSON and ROLLED_BACK it does not: the one
    changed nothing, the other tried, and each try costs the cluster a time without a scheduler.
    """

    OK = 0
    RETRY = 1
    NEEDS_PERSON = 2
    ROLLED_BACK = 3


class HostctlError(Exception):
    """A failure whose message says what was asked, what there is and what to do."""

    exit_code = ExitCode.RETRY


class RetryableError(HostctlError):
    """Something that may pass by itself: the scheduler did not come back, another run holds the lock."""


class NeedsPersonError(HostctlError):
    """Something that running again will not change: a manifest this program cannot edit safely."""

    exit_code = ExitCode.NEEDS_PERSON


class RolledBackError(HostctlError):
    """An edit that kube-scheduler did not serve with, and that was taken back.

    ``inputs`` is the digest of everything the edit was made from: trying again with the same is of no use.
    """

    exit_code = ExitCode.ROLLED_BACK

    def __init__(self, message: str, *, inputs: str) -> None:
        super().__init__(message)
        self.inputs = inputs
