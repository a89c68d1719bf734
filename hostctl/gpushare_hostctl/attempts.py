"""Starts a run over when somebody else writes the manifest meanwhile."""

import logging
from collections.abc import Callable

from gpushare_hostctl.errors import RetryableError
from gpushare_hostctl.host.files import FileChangedError
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.report import Report

_LOG = logging.getLogger(__name__)

ATTEMPTS = 3
"""Attempts, each with a fresh snapshot, before the manifest is left to the others."""

STARTING_SECONDS = 30.0
"""Besides the timeout, until everything is in place for an edit.

Until hostctl has made the folder of the keys, the kubelet fails to mount it for the extender's pod, and tries
again every 122 seconds at last. With the default timeout of 120 seconds that leaves 28 seconds for the pod's
next sync and its start.
"""

PAUSE = 5.0
"""Seconds before starting over: the others may not be done, and the kubelet sees the newer manifest."""


def with_fresh_snapshots(node: ControlPlaneNode, attempt: Callable[[float], Report]) -> Report:
    """Returns what ``attempt`` returns; calls it anew as long as the manifest changes under it.

    ``attempt`` takes a deadline by the waiter's clock, until which everything has to be in place for an edit.
    All attempts share it, so that the time of a run stays bounded. Raises RetryableError when the manifest
    changes too often.
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
