"""The shortest beginning of a history that still shows a difference, searched on fresh clusters."""

from collections.abc import Awaitable, Callable


async def shortest_failing_prefix(
    length: int, fails: Callable[[int], Awaitable[bool]], *, may_go_on: Callable[[], bool]
) -> int:
    """Returns the shortest length known to fail, ``length`` itself where none shorter was seen to.

    Halves the range as long as ``may_go_on``. Real processes do not do the same twice: a prefix that happened
    to
    pass only costs precision, for what is returned has been seen to fail.
    """
    passing, failing = 0, length
    while failing - passing > 1 and may_go_on():
        middle = (passing + failing) // 2
        if await fails(middle):
            failing = middle
        else:
            passing = middle
    return failing
