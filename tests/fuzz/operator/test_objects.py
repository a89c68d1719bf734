"""What the operator reads of the cluster: odd objects harm no others, whatever is admitted is handled."""

import json
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies import objects, policies
from tests.fuzz.strategies.odd_json import odd_texts
from tests.samples.operator import INSTALLATION, NOW, node, policy, snapshot, untouched

from gpushare_core.kubernetes_minors import KubernetesSupport, support_of
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.cache import Cache, Listing, read
from gpushare_operator.cluster.kinds import KINDS
from gpushare_operator.cluster.managed_fields import managers
from gpushare_operator.cluster.readers.pods import read_pod_without_scheduler
from gpushare_operator.cluster.readers.policies import read_policy
from gpushare_operator.cluster.readers.schedulers import read_scheduler
from gpushare_operator.cluster.server import ServerVersions, read_server_version
from gpushare_operator.cluster.watches import _identity
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.decide.policy_plan import plan_policy
from gpushare_operator.status.policy import policy_status

BY_PLURAL = {kind.plural: kind for kind in KINDS}


def read_into(cache: Cache, plural: str, body: Any) -> None:
    """By a watch event, by a list beside a good object, and gone."""
    kind, good = BY_PLURAL[plural], objects.OF_KIND[plural]
    known = {**good, "metadata": {**good["metadata"], "name": "good"}}
    cache.observe(kind, known)
    cache.observe(kind, body)
    listing: Listing[Any] = Listing(kind)
    listing.add([body, known])
    cache.replace(listing, "3")
    cache.forget(kind, read(kind, body))
    assert "good" in cache._objects(kind), "the good one is gone"


HUGE_PORT = {"gpushare.io/called-port": "9" * 5000}
HUGE_EXIT_CODE = {
    "type": "Failed",
    "status": "True",
    "message": f"failed with exit code {'9' * 5000} matching",
}


def of_kind(plural: str) -> st.SearchStrategy[tuple[str, Any]]:
    return st.tuples(st.just(plural), objects.watched(objects.OF_KIND[plural]))


@fuzzes(*(kind.read for kind in KINDS), few=50)
@given(st.sampled_from(sorted(objects.OF_KIND)).flatmap(of_kind))
@example(("leases", {**objects.LEASE, "metadata": {**objects.META, "annotations": HUGE_PORT}}))
@example(("jobs", {**objects.JOB, "status": {"conditions": [HUGE_EXIT_CODE]}}))
@example(("gpusharenodes", {**objects.SHARE_NODE, "status": {"conditions": [{"type": "x"}]}}))
@example(("nodes", {**objects.NODE, "status": None}))
@example(("pods", {"metadata": None}))
def test_an_odd_object_leaves_the_others_as_they_are(seen: tuple[str, Any]) -> None:
    read_into(Cache(), *seen)


@fuzzes(_identity, few=50)
@given(st.sampled_from(sorted(objects.OF_KIND)).flatmap(of_kind))
@example(("pods", {"metadata": {"name": "a", "resourceVersion": "9" * 5000}}))
@example(("pods", {"metadata": {"name": None}}))
@example(("pods", 3))
def test_what_can_be_read_has_the_same_name_and_version_without_being_read(seen: tuple[str, Any]) -> None:
    plural, body = seen
    name, version = _identity(msgspec.Raw(json.dumps(body).encode()))
    reading = read(BY_PLURAL[plural], body)
    assert (name, version) in {("", 0), (reading.name, reading.version)}


@fuzzes(read_policy, plan_policy, plan_cluster, policy_status, few=30)
@given(policies.specs)
def test_every_policy_that_the_crd_admits_is_planned_or_refused_with_a_reason(spec: Json) -> None:
    read = read_policy({"metadata": objects.META, "spec": spec})
    if read.spec is None:
        assert read.error
        return
    seen = snapshot(
        policy("default", spec=read.spec), node("n1", labels={"a": "b"}), node("n2"), untouched("cp")
    )
    owner = seen.policies["default"]
    plan_policy(seen, owner, INSTALLATION, NOW)
    plan_cluster(seen, INSTALLATION, NOW)
    policy_status(seen, owner, INSTALLATION, now=NOW).to_json()


@fuzzes(read_scheduler, read_pod_without_scheduler, read_server_version, ServerVersions.lowest)
@given(objects.watched(objects.POD), odd_texts | st.just("v" + "9" * 5000 + ".1.2"))
def test_pods_of_others_and_versions_are_read_or_refused(body: Any, version: str) -> None:
    found = read_server_version({"gitVersion": version})
    ServerVersions().lowest(version, NOW)
    assert support_of(version) in KubernetesSupport
    assert len(found) < 64
    for read_one in (lambda: read_scheduler(body, NOW), lambda: read_pod_without_scheduler(body)):
        try:
            read_one()
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            assert repr(error)


@fuzzes(managers)
@given(objects.watched(objects.NODE))
def test_owners_of_fields_are_found_whatever_the_fields_are(body: Any) -> None:
    fields = [{"manager": "m", "fieldsV1": {"f:status": {"k:" + json.dumps({"type": "x"}): {}}}}]
    assert managers(fields, {"status": body}, ("status", 0)) in (set(), {"m"})
