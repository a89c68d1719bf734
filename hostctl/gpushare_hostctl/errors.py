"""What can go wrong, by what it asks of the caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from gpushare_core.text.yaml_edit import TooLongError, YamlEditError


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


def utf8_text(content: bytes, *, name: str) -> str:
    """Raises NeedsPersonError, with the ``name`` of the text, for other bytes."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise NeedsPersonError(f"{name} is not UTF-8 text (byte {error.start})") from error


@contextmanager
def yaml_needs_person(edited: str = "") -> Iterator[None]:
    """Raises NeedsPersonError for a YAML text that cannot be read or edited.

    ``edited`` names the text, for people, where an edit may make it too long.
    """
    try:
        yield
    except TooLongError as error:
        raise NeedsPersonError(f"{edited} would be too long: {error}" if edited else str(error)) from error
    except YamlEditError as error:
        raise NeedsPersonError(str(error)) from error
