"""What the API server itself notes of our programs' writes: exact, whoever makes them and however."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from gpushare_core.api.names import NAMESPACE
from gpushare_core.text.json_object import UNREADABLE_JSON

PROGRAMS = ("operator", "plugin", "extender", "hostctl")
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gpushare-"
LEASES = "leases"


class _Reference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _User(msgspec.Struct):
    username: str = ""


class _Event(msgspec.Struct, rename="camel"):
    """Source: ``audit.k8s.io/v1``."""

    stage: str
    verb: str
    user: _User
    object_ref: _Reference | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One write that the API server has answered, whatever the answer."""

    program: str
    verb: str
    resource: str
    """With its subresource, as ``pods/binding``."""

    @property
    def is_of_lease(self) -> bool:
        return self.resource == LEASES


def flags(folder: Path) -> list[str]:
    """Writes the policy into ``folder``; returns the API server's flags that keep a log there."""
    folder.mkdir(parents=True, exist_ok=True)
    policy = folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(audit_policy()))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log_file(folder)}"]


def log_file(folder: Path) -> Path:
    return folder / "audit.log"


def audit_policy() -> dict[str, object]:
    """Returns the policy: the writes of our programs and nothing else, so that it costs others nothing."""
    ours = {
        "level": "Metadata",
        "users": [ACCOUNT + program for program in PROGRAMS],
        "verbs": ["create", "update", "patch", "delete", "deletecollection"],
    }
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [ours, {"level": "None"}],
    }


def writes(lines: Iterable[bytes]) -> Iterator[Write]:
    """Yields the writes in ``lines`` of the log; a last line that is not complete yet is none."""
    for line in lines:
        try:
            event = msgspec.json.decode(line, type=_Event)
        except UNREADABLE_JSON:
            continue
        if event.stage == "ResponseComplete" and event.user.username.startswith(ACCOUNT):
            yield _write(event)


def _write(event: _Event) -> Write:
    what = event.object_ref or _Reference()
    resource = f"{what.resource}/{what.subresource}" if what.subresource else what.resource
    return Write(event.user.username.removeprefix(ACCOUNT), event.verb, resource)


@dataclass(frozen=True, slots=True)
class AuditLog:
    """The log of one API server."""

    path: Path

    def position(self) -> int:
        """Returns where its end is now.

        Raises:
            OSError: the API server keeps none.
        """
        return self.path.stat().st_size

    def since(self, position: int) -> list[Write]:
        """Returns the writes from ``position`` on."""
        with self.path.open("rb") as log:
            log.seek(position)
            return list(writes(log))


def counted(found: Iterable[Write], program: str) -> Counter[str]:
    """Returns how often ``program`` wrote each resource; Leases apart."""
    return Counter(entry.resource for entry in found if entry.program == program and not entry.is_of_lease)
