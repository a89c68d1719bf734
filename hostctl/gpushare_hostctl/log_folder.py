"""A folder of the host that the extender, which is not root, may keep its log in."""

import logging
import os
from pathlib import Path

GROUP_MODE = 0o770
"""Its group may write there; others see nothing."""

_LOG = logging.getLogger(__name__)


def prepare(folder: Path, *, group: int) -> None:
    """Lets ``group`` write to ``folder``. This process has to be in that group: then root needs no capability
    for it where the folder is its own.

    A folder of another group that holds anything stays as it is: somebody else's files are in it. Every
    failure is only logged, because the extender has to start without its log file, too.
    """
    try:
        found = folder.stat()
        if found.st_gid != group and any(folder.iterdir()):
            _LOG.error(
                "the folder extender below extender.logFolder holds files of others: the extender's log is"
                " not kept there until they are gone, or until another folder is named"
            )
            return
        os.chown(folder, -1, group)
        folder.chmod(GROUP_MODE)
    except OSError as error:
        _LOG.error("the folder extender below extender.logFolder cannot be prepared: %s", error)
