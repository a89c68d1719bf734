"""How amounts of memory are written for people."""

from gpushare_core.placement.quantity import format_memory


def quantity_text(size: int, like: str = "1Gi") -> str:
    """Returns ``size`` bytes exactly, in the shorter family of suffixes; in that of ``like`` on ties."""
    other = "1M" if like.endswith("i") else "1Mi"
    return min(format_memory(size, like=like), format_memory(size, like=other), key=len)
