"""What objects of every kind have: times, deletion, conditions."""

from datetime import datetime
from typing import Any

from gpushare_core.api.conditions import TRUE
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.text.json_object import Json


def read_time(text: Any) -> datetime | None:
    """Returns None for what is no time with a zone."""
    return read_rfc3339(str(text))


def is_deleting(body: Json) -> bool:
    return "deletionTimestamp" in body["metadata"]


def true_condition(status: Json, kind: str) -> Json | None:
    of_kind = (condition for condition in status.get("conditions") or () if condition["type"] == kind)
    return next((condition for condition in of_kind if condition["status"] == TRUE), None)


def is_condition_true(status: Json, kind: str) -> bool:
    return true_condition(status, kind) is not None
