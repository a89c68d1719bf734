"""Pods as people write them, and nodes as they are: ``why`` has whole sentences for whatever is in them."""

from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import mutated, odd_texts
from tests.samples.surroundings import asked, node
from tests.samples.why import MEMORY, memory_pod

from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.situation import read_kube_pod

AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["4"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]},
            ]
        }
    }
}
POD = memory_pod(
    4,
    affinity=AFFINITY,
    nodeSelector={"disk": "ssd"},
    tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    schedulingGates=[{"name": "g"}],
    topologySpreadConstraints=[{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    overhead={"cpu": "1"},
)


@fuzzes(written_pod, read_kube_pod, explain)
@given(pod=mutated(POD))
@example(pod=POD)
def test_of_any_pod_something_is_said_or_it_is_none(pod: Any) -> None:
    try:
        read_kube_pod(pod)
    except msgspec.ValidationError:
        return
    report = explain(asked(pod, nodes=[node(labels={"size": "9", "disk": "hdd"})], claims={}))
    assert report.answer
    assert all(finding.sentence for finding in report.findings)


@fuzzes(explain)
@given(amount=odd_texts | st.from_regex(r"[0-9]{1,30}(\.[0-9]{1,9})?([KMGTPE]i|[kMGTPE])?", fullmatch=True))
@example(amount="9" * 18 + "Ei")
def test_of_any_amount_something_is_said(amount: str) -> None:
    pod = memory_pod(4)
    pod["spec"]["containers"][0]["resources"]["limits"] = {MEMORY: amount, "cpu": amount, "memory": amount}
    assert explain(asked(pod)).answer


@fuzzes(explain)
@given(labels=st.dictionaries(odd_texts, odd_texts, max_size=3), size=odd_texts)
def test_of_any_label_something_is_said(labels: dict[str, str], size: str) -> None:
    assert explain(asked(POD, nodes=[node(labels={**labels, "size": size})])).answer
