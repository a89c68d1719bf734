"""Ctrl-C for programs that tests start."""

import signal


def takes_interrupts() -> None:
    """For ``preexec_fn``: what a shell starts in the background ignores Ctrl-C, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
