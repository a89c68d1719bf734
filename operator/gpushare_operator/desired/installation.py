"""How this installation differs from others: what the operator is told when it starts."""

from dataclasses import dataclass

from gpushare_core.api.names import NAMESPACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    namespace: str = NAMESPACE
    image: str
    """One image holds all programs."""
