"""The answer to one question of a preflight."""

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Something to know, or to do, that does not prevent the use of gpushare."""
    MISSING = "missing"
    """gpushare cannot be used, or not be installed by you, until this is mended."""
    UNKNOWN = "unknown"


class PreflightAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    question: str = ""
    """A word or two, by which tables and programs name it."""
    verdict: Verdict
    found: str
    to_do: str = ""
    """A sentence or several."""
    command: str = ""
    """To type for it."""
    nodes: tuple[str, ...] = ()
    """All of those that ``to_do`` is about."""
