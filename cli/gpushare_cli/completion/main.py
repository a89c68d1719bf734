"""``kubectl_complete-gpushare``, which kubectl asks for completions, and ``kubectl gpushare __complete``.

It is asked whenever somebody presses Tab. So it says nothing of what goes wrong, asks nobody for anything,
and ends in time.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

MAX_SECONDS = 0.8
"""From the start of the process on, until names are given up: nobody waits longer than a second for a Tab."""
SECONDS_VARIABLE = "KUBECTL_GPUSHARE_COMPLETION_SECONDS"
"""More of them, for a program that logs in slowly, or a machine that is busy."""
MIN_SECONDS = 0.1
MOST_SECONDS = 60.0
END_SECONDS = 0.15
"""For ending what was begun, such as a program that logs in; then the process is gone."""
NOTHING = ":4\n"
"""No candidate, and no files either."""


def main(words: Sequence[str] | None = None) -> int:
    """Prints what could be the last of ``words``, a line each, and then what the shell does besides.

    Source: ``pluginCompletion`` in kubectl's ``plugin_completion.go``.
    """
    # What the process has computed until now has taken at least as long.
    seconds = max(MIN_SECONDS, max_seconds(os.environ) - time.process_time())
    _end_in_time(seconds + END_SECONDS)
    _be_silent()
    typed = sys.argv[1:] if words is None else words
    try:
        completion = asyncio.run(asyncio.wait_for(_complete(typed, os.environ), seconds))
    except (Exception, SystemExit):
        completion = NOTHING
    signal.setitimer(signal.ITIMER_REAL, 0)  # it has something to print now, once
    sys.stdout.write(completion)
    sys.stdout.flush()
    return 0


async def _complete(words: Sequence[str], environment: Mapping[str, str]) -> str:
    from gpushare_cli.arguments import DEFAULT_COMMAND, program_parser
    from gpushare_cli.completion.candidates import complete
    from gpushare_cli.completion.cluster_names import ClusterNames
    from gpushare_cli.completion.typed_words import TypedWords

    typed = TypedWords(program_parser(), DEFAULT_COMMAND)
    return str(await complete(typed, words, ClusterNames(environment).sources))


def max_seconds(environment: Mapping[str, str]) -> float:
    """Returns ``MAX_SECONDS`` where no number of seconds is set, and ``MOST_SECONDS`` for more of them."""
    with suppress(ValueError):
        seconds = float(environment.get(SECONDS_VARIABLE, ""))
        if seconds > 0:
            return min(seconds, MOST_SECONDS)
    return MAX_SECONDS


def _end_in_time(seconds: float) -> None:
    signal.signal(signal.SIGALRM, lambda *_: _give_up())
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _give_up() -> None:
    os.write(sys.stdout.fileno(), NOTHING.encode())
    os._exit(0)


def _be_silent() -> None:
    """Nobody is asked for a password either, by a program that logs in."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (sys.__stdin__, sys.__stderr__):
        if standard is not None:
            os.dup2(nowhere, standard.fileno())
    os.close(nowhere)
