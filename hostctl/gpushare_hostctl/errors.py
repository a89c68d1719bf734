"""What can go wrong, by what it asks of the caller."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the program: after NEEDS_PERSON the operator waits longest before it tries again."""

    OK = 0
    RETRY = 1
    NEEDS_PERSON = 2


class HostctlError(Exception):
    """A failure whose message says what was asked, what there is and what to do."""

    exit_code = ExitCode.RETRY


class RetryableError(HostctlError):
    """Something that may pass by itself: the scheduler did not come back, another run holds the lock."""


class NeedsPersonError(HostctlError):
    """Something that running again will not change: a manifest this program cannot edit safely."""

    exit_code = ExitCode.NEEDS_PERSON
