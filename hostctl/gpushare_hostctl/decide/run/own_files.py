"""Which files in our folder are ours: no other is ever removed, wherever ``--folder`` points."""

import re
from pathlib import PurePosixPath

from gpushare_hostctl.decide.run.record import FILE_NAME
from gpushare_hostctl.decide.run.snapshot import SCHEDULER_FOLDER
from gpushare_hostctl.decide.scheduler.key_pairs import KEY_FILES

FOLDERS = tuple(dict.fromkeys((*(str(PurePosixPath(path).parent) for path in KEY_FILES), SCHEDULER_FOLDER)))
"""Folders in ours."""

_FIXED = frozenset({FILE_NAME, *KEY_FILES})
_CONFIGURATION = re.compile(r"scheduler-config-[0-9a-f]{12}\.yaml")
_NAMED_BY_CONTENT = re.compile(
    rf"{_CONFIGURATION.pattern}|{SCHEDULER_FOLDER}/(client|authorities)-[0-9a-f]{{12}}\.pem"
)
_UNFINISHED = ".new"
SUM = 12
"""Digits of a checksum in a file's name."""
EXCHANGE = ".exchange"
"""Suffix of files that are exchanged with the manifest."""


def is_ours(path: str, *, manifest: str) -> bool:
    """Returns whether this program writes ``path`` in our folder. ``manifest``: name of kube-scheduler's.

    The name alone decides: the record may be lost.
    """
    finished = path.removesuffix(_UNFINISHED)
    name = re.escape(manifest)
    return (
        finished in _FIXED
        or _NAMED_BY_CONTENT.fullmatch(finished) is not None
        or re.fullmatch(rf"{name}\.([0-9a-f]{{12}}\.backup|fallback)", finished) is not None
        or sums_of_exchange(path, manifest=manifest) is not None
        or path == f"{manifest}{_UNFINISHED}"
    )


def is_configuration(name: str) -> bool:
    """Returns whether an edited manifest names such a file as its configuration."""
    return _CONFIGURATION.fullmatch(name) is not None


def sums_of_exchange(path: str, *, manifest: str) -> tuple[str, str] | None:
    """Returns the checksums in the name of a file that is exchanged with ``manifest``: of the text to put
    there, and of the text expected there. None for any other file."""
    name = rf"{re.escape(manifest)}\.([0-9a-f]{{{SUM}}})\.([0-9a-f]{{{SUM}}}){re.escape(EXCHANGE)}"
    match = re.fullmatch(name, path)
    return (match[1], match[2]) if match else None
