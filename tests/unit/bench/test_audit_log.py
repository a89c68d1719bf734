"""The API server's audit log, as it writes it."""

import json
from pathlib import Path

import yaml
from bench.readings.audit_log import ACCOUNT, AuditLog, Write, counted, flags, log_file, writes


def line(
    program: str, verb: str, resource: str, subresource: str = "", stage: str = "ResponseComplete"
) -> bytes:
    reference = {"resource": resource, "namespace": "default", "name": "a", "apiVersion": "v1"}
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "0",
        "stage": stage,
        "requestURI": "/api/v1/namespaces/default/pods/a",
        "verb": verb,
        "user": {"username": f"{ACCOUNT}{program}", "groups": ["system:serviceaccounts"]},
        "objectRef": {**reference, "subresource": subresource} if subresource else reference,
        "responseStatus": {"metadata": {}, "code": 201},
    }
    return json.dumps(event).encode() + b"\n"


BINDING = line("extender", "create", "pods", "binding")
LEASE = line("extender", "update", "leases")
STATUS = line("plugin", "patch", "gpusharenodes", "status")


def test_writes_are_read_with_their_subresource() -> None:
    assert list(writes([BINDING, STATUS])) == [
        Write("extender", "create", "pods/binding"),
        Write("plugin", "patch", "gpusharenodes/status"),
    ]


def test_a_write_counts_once_and_others_not_at_all() -> None:
    begun = line("extender", "create", "pods", "binding", stage="ResponseStarted")
    stranger = BINDING.replace(ACCOUNT.encode(), b"system:serviceaccount:other:")
    assert list(writes([begun, stranger, b"\n", BINDING[:40]])) == []


def test_leases_are_counted_apart() -> None:
    found = list(writes([BINDING, LEASE, STATUS, BINDING]))
    assert counted(found, "extender") == {"pods/binding": 2}
    assert counted(found, "plugin") == {"gpusharenodes/status": 1}
    assert counted(found, "operator") == {}


def test_only_what_came_since_is_read(tmp_path: Path) -> None:
    log = AuditLog(log_file(tmp_path))
    log.path.write_bytes(BINDING)
    begun = log.position()
    with log.path.open("ab") as file:
        file.write(STATUS)
    assert [entry.program for entry in log.since(begun)] == ["plugin"]


def test_only_writes_of_our_programs_are_logged(tmp_path: Path) -> None:
    policy_flag, log_flag = flags(tmp_path / "audit")
    policy = yaml.safe_load(Path(policy_flag.partition("=")[2]).read_text())
    ours, rest = policy["rules"]
    assert f"{ACCOUNT}extender" in ours["users"]
    assert "get" not in ours["verbs"]
    assert rest == {"level": "None"}
    assert log_flag == f"--audit-log-path={log_file(tmp_path / 'audit')}"
