"""Structured logs: one JSON object a line, with the same keys in every program."""

import json
import logging
import sys
from datetime import UTC, datetime

KEYS = ("policy", "node", "card", "pod", "container", "job")
"""What ``extra=`` may carry."""


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": moment,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{key: getattr(record, key) for key in KEYS if hasattr(record, key)},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure_logging(level: str) -> None:
    """Sends everything from ``level`` (``debug``, ``info``, ``warning``, ``error``) upwards to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
