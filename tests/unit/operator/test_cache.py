"""Lists, watch events and answers in any order: the newest wins."""

from tests.samples.operator import scheduler

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.cache import Cache, Change, Listing, read
from gpushare_operator.cluster.kinds import DAEMON_SETS, NODES
from gpushare_operator.cluster.objects import NodeObject


def node(version: int, name: str = "n", /, **labels: str) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata}


def listing(*bodies: Json) -> Listing[NodeObject]:
    made = Listing(NODES)
    made.add(bodies)
    return made


def test_a_heartbeat_is_no_change() -> None:
    cache = Cache()
    assert cache.observe(NODES, node(1))
    assert not cache.observe(NODES, node(2))
    assert cache.observe(NODES, node(3, a="b"))


def test_what_is_older_is_ignored() -> None:
    cache = Cache()
    cache.observe(NODES, node(5, a="new"))
    assert not cache.observe(NODES, node(4, a="old"))
    assert cache.snapshot().nodes["n"].labels == {"a": "new"}


def test_versions_are_as_long_as_the_server_makes_them() -> None:
    cache = Cache()
    cache.observe(NODES, node(10**18 - 1, a="old"))
    assert cache.observe(NODES, node(10**18 + 1, a="new"))
    assert not cache.observe(NODES, node(10**18, a="late"))
    assert cache.snapshot().nodes["n"].labels == {"a": "new"}


def test_a_deletion_that_comes_late_does_not_remove_the_successor() -> None:
    cache = Cache()
    cache.observe(NODES, node(9))
    assert not cache.forget(NODES, read(NODES, node(8)))
    assert "n" in cache.snapshot().nodes


def test_what_comes_late_after_a_deletion_does_not_bring_it_back() -> None:
    cache = Cache()
    cache.observe(NODES, node(1))
    assert cache.forget(NODES, read(NODES, node(5)))
    assert not cache.observe(NODES, node(4))
    assert cache.snapshot().nodes == {}


def test_an_answer_of_the_version_of_a_deletion_does_not_bring_it_back() -> None:
    """For the watch an object is deleted by the very write, here answered, that takes off its label."""
    cache = Cache()
    cache.observe(NODES, node(1))
    assert cache.forget(NODES, read(NODES, node(5)))
    assert not cache.observe(NODES, node(5))
    assert cache.snapshot().nodes == {}


def test_a_list_tells_what_vanished() -> None:
    cache = Cache()
    cache.observe(NODES, node(1))
    assert cache.replace(Listing(NODES), "2")
    assert cache.snapshot().nodes == {}


def test_what_came_after_a_list_was_read_stays() -> None:
    cache = Cache()
    cache.observe(NODES, node(7, a="new"))
    assert not cache.replace(listing(node(3, a="old")), "5")
    assert cache.snapshot().nodes["n"].labels == {"a": "new"}


def test_what_was_deleted_after_a_list_was_read_stays_gone() -> None:
    cache = Cache()
    cache.observe(NODES, node(3))
    cache.forget(NODES, read(NODES, node(7)))
    assert not cache.replace(listing(node(3)), "5")
    assert cache.snapshot().nodes == {}


def test_a_list_that_comes_after_a_newer_one_brings_nothing_back() -> None:
    """It took over whatever came last: a deleted node had its policy again until the next list."""
    cache = Cache()
    cache.observe(NODES, node(3))
    late = listing(node(3))
    assert cache.replace(listing(), "9")
    assert not cache.replace(late, "5")
    assert cache.snapshot().nodes == {}


def test_an_answer_that_comes_after_a_newer_list_brings_nothing_back() -> None:
    cache = Cache()
    cache.observe(NODES, node(3))
    cache.replace(listing(), "9")
    assert not cache.observe(NODES, node(5))
    assert cache.snapshot().nodes == {}
    assert cache.observe(NODES, node(11))


def filled(cache: Cache, *bodies: Json) -> Listing[NodeObject]:
    """A list that is asked for now."""
    made = cache.listing(NODES)
    made.add(bodies)
    return made


def before_the_restore() -> Cache:
    cache = Cache()
    cache.replace(filled(cache, node(900, a="new"), node(950, "second"), node(200, "third")), "1000")
    return cache


def test_once_etcd_was_restored_from_a_backup_the_cache_is_as_the_backup() -> None:
    """All versions are lower than those that were known: whatever came was ignored, until a restart."""
    cache = before_the_restore()
    restored = filled(cache, node(300, a="old"), node(200, "third"), node(310, "fourth"))
    assert cache.replace(restored, "500") is Change.ALL
    assert sorted(cache.snapshot().nodes) == ["fourth", "n", "third"]
    assert cache.snapshot().nodes["n"].labels == {"a": "old"}
    assert cache.snapshot().states.keys() == cache.snapshot().nodes.keys()
    assert cache.observe(NODES, node(501, a="written")), "a write of ours, or an event"
    assert cache.forget(NODES, read(NODES, node(502, "third")))
    assert not cache.observe(NODES, node(499, "third")), "of one object the newest wins again"
    assert cache.replace(filled(cache, node(501, a="written")), "510")
    assert cache.snapshot().nodes.keys() == {"n"}


def test_what_is_as_it_was_before_the_restore_is_no_change() -> None:
    cache = before_the_restore()
    restored = filled(cache, node(300, a="new"), node(150, "second"), node(200, "third"))
    assert cache.replace(restored, "500") is Change.NOTHING


def test_a_list_of_before_the_restore_that_comes_after_it_brings_nothing_back() -> None:
    cache = before_the_restore()
    lost = filled(cache, node(900, a="new"), node(950, "second"))
    cache.replace(filled(cache, node(300, a="old")), "500")
    assert not cache.replace(lost, "1000")
    assert cache.observe(NODES, node(501, a="written"))


def test_two_lists_that_tell_of_a_restore_come_in_any_order() -> None:
    cache = before_the_restore()
    early = filled(cache, node(300, a="old"))
    late = filled(cache, node(501, a="later"))
    cache.replace(late, "505")
    assert not cache.replace(early, "500")
    assert cache.snapshot().nodes["n"].labels == {"a": "later"}


def test_an_answer_of_before_the_restore_that_comes_after_it_lasts_until_the_next_list() -> None:
    cache = before_the_restore()
    cache.replace(filled(cache, node(300, a="old")), "500")
    cache.observe(NODES, node(990, a="lost"))
    assert cache.replace(filled(cache, node(300, a="old")), "510")
    assert cache.snapshot().nodes["n"].labels == {"a": "old"}
    assert cache.observe(NODES, node(511, a="written"))


def test_such_an_answer_does_not_outlast_a_list_of_newer_versions() -> None:
    cache = before_the_restore()
    cache.replace(filled(cache, node(300, a="old")), "500")
    cache.observe(NODES, node(990, a="lost"))
    assert cache.replace(filled(cache, node(300, a="old")), "2000")
    assert cache.snapshot().nodes["n"].labels == {"a": "old"}


def test_a_list_is_not_of_the_past_because_something_newer_comes_while_it_is_read() -> None:
    cache = before_the_restore()
    slow = filled(cache, node(1001, a="listed"))
    cache.observe(NODES, node(1005, a="newer"))
    assert cache.replace(slow, "1002")
    assert cache.snapshot().nodes["n"].labels == {"a": "newer"}
    assert not cache.observe(NODES, node(1004, a="late"))


def test_what_a_snapshot_shows_never_changes() -> None:
    cache = Cache()
    cache.observe(NODES, node(1))
    before = cache.snapshot()
    cache.observe(NODES, node(2, a="b"))
    cache.forget(NODES, read(NODES, node(3)))
    assert before.nodes["n"].labels == {}
    assert before.states["n"].node == before.nodes["n"]
    assert cache.snapshot().states == {}


def test_without_a_change_the_snapshot_stays_the_same() -> None:
    cache = Cache()
    cache.observe(NODES, node(1))
    before = cache.snapshot()
    cache.observe(NODES, node(2))
    assert cache.snapshot() is before


def test_whoever_owns_the_fields_now_is_known() -> None:
    """A person had set one, and an admission webhook now sets the same: the person went on being named."""

    def daemon_set(version: int, *managers: str) -> Json:
        fields: Json = {"f:spec": {"f:replicas": {}}}
        managed: list[Json] = [{"manager": manager, "fieldsV1": fields} for manager in managers]
        seen = {"manager": "kubelet", "subresource": "status", "time": str(version)}
        metadata = {"name": "d", "uid": "uid-d", "resourceVersion": str(version)}
        return {"metadata": {**metadata, "managedFields": [*managed, seen]}, "spec": {"replicas": 1}}

    cache = Cache()
    cache.observe(DAEMON_SETS, daemon_set(1, "kubectl-edit"))
    assert cache.observe(DAEMON_SETS, daemon_set(2, "gpushare-operator"))
    known = cache.snapshot().daemon_sets["d"]
    assert [managed_field["manager"] for managed_field in known.managed_fields] == ["gpushare-operator"]
    assert not cache.observe(DAEMON_SETS, daemon_set(3, "gpushare-operator")), "its status is nobody's matter"


def test_what_a_list_says_again_is_not_held_twice() -> None:
    cache = Cache()
    cache.observe(NODES, node(1, a="b"))
    known = cache.snapshot().nodes["n"]
    again = cache.listing(NODES)
    again.add([node(1, a="b")])
    assert not again.entries, "not even read"
    again.add([node(2, a="b")])
    assert again.entries["n"].known is known
    assert not cache.replace(again, "4")
    assert cache.snapshot().nodes["n"] is known


def test_several_schedulers_of_one_node_are_all_kept() -> None:
    """A second kube-scheduler is often a copy of the first one's manifest, its labels included."""
    cache = Cache()
    both = [scheduler(name="kube-scheduler-cp", node="cp"), scheduler(name="second-cp", node="cp")]
    cache.replace_schedulers(both)
    assert list(cache.snapshot().schedulers.values()) == both
