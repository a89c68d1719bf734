"""Units that lie side by side: most containers have such ones, and a node has hundreds of thousands."""

from collections.abc import Sequence


def unit_range(numbers: Sequence[int]) -> range | None:
    """Returns ``numbers``, which are ascending and each there once, as a range; None where that has gaps."""
    first, last = (numbers[0], numbers[-1]) if numbers else (0, -1)
    return range(first, last + 1) if last - first + 1 == len(numbers) else None
