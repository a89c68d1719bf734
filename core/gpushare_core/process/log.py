"""Structured logs with the same keys in every program: JSON in a pod, lines for people on a terminal."""

import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TextIO

from gpushare_core.text.printable import printable, printable_lines

KEYS = ("policy", "node", "card", "pod", "container", "job")
"""Keys that ``extra=`` may have."""
NOTHING: Mapping[str, str] = MappingProxyType({})
RARE_SECONDS = 60.0

_SECRETS = re.compile(
    r"(?P<bearer>\bBearer\s+)[\w.~+/=-]+"
    r"|(?<![\w-])(?=[\w-]*\beyJ[\w-])[\w-]+\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""Looks at every word once: a search that starts again at every ``eyJ`` needs a second for 32 KiB, which
others may write into what is logged, and the process does nothing else meanwhile."""
REDACTED = "[redacted]"


def without_secrets(text: str) -> str:
    """Returns ``text`` with tokens and private keys replaced: the errors of other programs may quote them."""
    return _SECRETS.sub(lambda found: (found["bearer"] or "") + REDACTED, text)


class RareLog(logging.LoggerAdapter[logging.Logger]):
    """Logs at most one line a minute: strangers must not fill the disk."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float]) -> None:
        super().__init__(logger, {})
        self._clock = clock
        self._last = float("-inf")

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if self.isEnabledFor(level) and self._clock() - self._last >= RARE_SECONDS:
            self._last = self._clock()
            super().log(level, msg, *args, **kwargs)


class _Formatter(logging.Formatter):
    """``fixed`` are keys of every line; the keys of a line itself take precedence."""

    def __init__(self, fixed: Mapping[str, str] = NOTHING) -> None:
        super().__init__()
        self._fixed = fixed

    def _keys(self, record: logging.LogRecord) -> Iterator[tuple[str, str]]:
        for key in KEYS:
            value = getattr(record, key, self._fixed.get(key))
            if value is not None:
                yield key, without_secrets(str(value))

    def _error(self, record: logging.LogRecord) -> str:
        return without_secrets(self.formatException(record.exc_info)) if record.exc_info else ""


class JsonFormatter(_Formatter):
    """One JSON object a line, in printable ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": moment,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
            **dict(self._keys(record)),
        }
        if error := self._error(record):
            line["error"] = error
        return json.dumps(line)


class HumanFormatter(_Formatter):
    """For people: time of day, level, message, and keys."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        keys = " ".join(f"{key}={printable(value)}" for key, value in self._keys(record))
        message = printable(without_secrets(record.getMessage()))
        line = f"{moment} {record.levelname.lower():<7} {message}" + (f"  [{keys}]" if keys else "")
        error = printable_lines(self._error(record))
        return f"{line}\n{error}" if error else line


def configure_logging(
    level: str, *, fixed: Mapping[str, str] = NOTHING, stream: TextIO | None = None
) -> None:
    """Logs everything from ``level`` (``debug``, ``info``, ``warning``, ``error``) upwards to ``stream``, by
    default stderr: for people where that is a terminal. ``fixed`` are keys of every line.

    An error that ends the process or a thread is logged too; Python would print it unescaped.
    """
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter((HumanFormatter if stream.isatty() else JsonFormatter)(fixed))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_ended_thread


def log_start(program: str, version: str) -> None:
    """Logs program and version, before anything else."""
    logging.getLogger(program.replace("-", "_")).info("%s %s starts", program, version)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    logging.getLogger().critical("an error ends the process", exc_info=(kind, error, trace))


def _log_ended_thread(ended: threading.ExceptHookArgs) -> None:
    error = ended.exc_value or ended.exc_type()
    logging.getLogger().critical(
        "an error ends the thread %s", ended.thread and ended.thread.name, exc_info=error
    )


def most_verbose(levels: Iterable[str], *, otherwise: str) -> str:
    """Returns the most verbose of ``levels``; ``otherwise`` where there are none."""
    numbers = logging.getLevelNamesMapping()
    return min(levels, key=lambda level: numbers[level.upper()], default=otherwise)


def change_level(level: str) -> bool:
    """Logs from ``level`` upwards from now on. Returns whether that is a change."""
    root = logging.getLogger()
    number = logging.getLevelNamesMapping()[level.upper()]
    if root.level == number:
        return False
    root.setLevel(number)
    return True
