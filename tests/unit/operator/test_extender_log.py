"""Where extenders keep their log: what the oldest policy that names a folder says."""

from dataclasses import replace

from tests.samples.operator import INSTALLATION, extender, node, policy, rule, share, snapshot, spec

from gpushare_core.api.names import FINALIZER
from gpushare_operator.backends.extender_workload.daemon_set import extender_daemon_set
from gpushare_operator.backends.extender_workload.log_folder import NOT_KEPT, ExtenderLog, extender_log
from gpushare_operator.cluster.objects import PolicyObject


def asking(name: str, folder: str, *, created: int) -> PolicyObject:
    wanted = spec(rule(f"gpu-of-{name}"), extender={"logFolder": folder})
    return replace(policy(name, created=created), spec=wanted, finalizers=(FINALIZER,))


def test_no_policy_names_a_folder() -> None:
    assert extender_log(snapshot(asking("a", "", created=0))) == NOT_KEPT


def test_the_oldest_that_names_one_decides() -> None:
    older, old, new = (
        asking("a", "", created=0),
        asking("b", "/var/log/b", created=1),
        asking("c", "/var/log/c", created=2),
    )
    assert extender_log(snapshot(older, old, new)) == ExtenderLog("/var/log/b/extender")


def test_while_the_policy_cannot_be_read_the_log_stays_where_it_is() -> None:
    kept = ExtenderLog("/var/log/b/extender")
    broken = replace(asking("b", "/var/log/b", created=0), spec=None, error="unreadable")
    in_force = share("gpu-of-b", asking("b", "/var/log/b", created=0))
    present = extender(body=extender_daemon_set(INSTALLATION, [22766], kept))
    assert extender_log(snapshot(broken, node("gpu-of-b", "b"), in_force, present)) == kept
