"""Which files in our folder are ours: nothing else is ever removed, wherever ``--folder`` points."""

import re
from pathlib import PurePosixPath

from gpushare_hostctl.decide.key_pairs import AUTHORITY_FILE, CLIENT_FILE, SERVER_FILE, TRUSTED_FILE
from gpushare_hostctl.decide.record import FILE_NAME
from gpushare_hostctl.decide.snapshot import SCHEDULER_FOLDER

FOLDERS = tuple(
    dict.fromkeys(
        str(PurePosixPath(path).parent)
        for path in (AUTHORITY_FILE, CLIENT_FILE, SERVER_FILE, TRUSTED_FILE, f"{SCHEDULER_FOLDER}/*")
    )
)
"""Folders in ours."""

_FIXED = frozenset({FILE_NAME, AUTHORITY_FILE, CLIENT_FILE, SERVER_FILE, TRUSTED_FILE})
_NAMED_BY_CONTENT = re.compile(
    rf"scheduler-config-[0-9a-f]{{12}}\.yaml|{SCHEDULER_FOLDER}/(client|authorities)-[0-9a-f]{{12}}\.pem"
)
_UNFINISHED = ".new"


def is_ours(path: str, *, manifest: str) -> bool:
    """Returns whether this program writes a file at ``path`` in our folder; ``manifest`` is the scheduler's
    name. The name alone decides: the record may be lost."""
    finished = path.removesuffix(_UNFINISHED)
    name = re.escape(manifest)
    return (
        finished in _FIXED
        or _NAMED_BY_CONTENT.fullmatch(finished) is not None
        or re.fullmatch(rf"{name}\.([0-9a-f]{{12}}\.backup|fallback)", finished) is not None
        or re.fullmatch(rf"{name}(\.[0-9a-f]{{12}}){{2}}\.exchange", path) is not None
        or path == f"{manifest}{_UNFINISHED}"
    )
