"""Starting over when somebody else writes the manifest while a run is at work on it."""

import logging
from collections.abc import Callable

from gpushare_hostctl.errors import RetryableError
from gpushare_hostctl.host.files import FileChangedError
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.report import RunResult

_LOG = logging.getLogger(__name__)

ATTEMPTS = 3
"""How often a run begins with a fresh look at the host before it leaves the manifest to the others."""

STARTING_SECONDS = 30.0
"""In addition to the timeout until everything is in place for an edit.

Until hostctl has made the folder of its keys, the kubelet fails to mount it for the extender's pod; at last
it tries every 122 seconds. With the default timeout of 120 seconds that leaves 28 for the pod's next sync and
its start.
"""

PAUSE = 5.0
"""Seconds before starting over: whoever writes may not be done, and the kubelet sees the newer manifest."""


def with_fresh_snapshots(node: ControlPlaneNode, attempt: Callable[[float], RunResult]) -> RunResult:
    """Returns what ``attempt`` returns, called anew as long as the manifest changes under it.

    ``attempt`` takes the time of the waiter's clock until which everything has to be in place for an edit;
    all attempts share that, so that the time of a run stays bounded. Raises RetryableError when it changes
    too often.
    """
    clock = node.waiter.clock
    deadline = clock() + node.waiter.timeout + STARTING_SECONDS
    for number in range(1, ATTEMPTS + 1):
        try:
            node.settle()
            return attempt(deadline)
        except FileChangedError as error:
            if number == ATTEMPTS or clock() + PAUSE >= deadline:
                raise RetryableError(f"{error} and was left so; run again when they are done") from error
            _LOG.warning("%s; starting over", error)
            node.waiter.sleep(PAUSE)
    raise AssertionError("the last attempt returns or raises")
