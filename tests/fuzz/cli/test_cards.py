"""GPUShareNodes, pods and quotas of any shape: what can be read is shown, and nothing moves a cursor."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated
from tests.samples.drawn_pages import drawn, page_of_width
from tests.samples.shared_cards import card, pending_pod_object, raw, share, share_node_object

from gpushare_cli.decide.holders.namespaces_report import namespaces_report, quota_limits
from gpushare_cli.decide.holders.pod_holding import pod_holdings
from gpushare_cli.decide.holders.pods_report import PodSort, pods_report
from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.inspection.inspection import InspectionChoice, InspectionSort, card_inspection
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.objects.pending_pod import read_pending_pod
from gpushare_cli.decide.objects.resource_quota import ResourceQuotaObject
from gpushare_cli.decide.use.top_report import TopOf, TopSort, top_report
from gpushare_cli.output.format import Format, document_text
from gpushare_cli.views.holders import namespaces_view, pods_view
from gpushare_cli.views.inspection import inspection_view
from gpushare_cli.views.top import top_view
from gpushare_core.text.json_object import UNREADABLE_JSON

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FAULT = {"uuid": "GPU-n1-1", "reason": "Xid79", "message": "lost", "since": "2026-01-01T00:00:00Z"}
NODES = [
    share_node_object(
        "n1",
        card(0, 16, share("a/x", 4, used="5Gi"), share("a/x", 2, container="side"), usedMemory="9Gi"),
        card(1, 16, health="Unhealthy", cordoned=True),
        faults=(FAULT,),
        reservedMemory="1Gi",
    ),
    share_node_object(
        "n2",
        card(
            0, 2, share("a/y", 1, orphaned=True), lock="Slices", offers={"memory": 16, "slice": 2, "card": 1}
        ),
        mode="Mixed",
        unit="1Gi, 1/2 card, 1 card",
        dialect="aliyun.com",
    ),
]
PODS = [
    pending_pod_object("a/new", 3, node="n1", card="GPU-n1-0"),
    pending_pod_object("b/waits", 20, message="0/2 nodes are available"),
]
QUOTA = {
    "metadata": {"name": "gpu", "namespace": "a"},
    "spec": {"hard": {"requests.gpushare.io/memory": "32"}},
    "status": {"hard": {"requests.gpushare.io/memory": "32"}, "used": {"requests.gpushare.io/memory": "4"}},
}


def quotas_of(item: bytes) -> list[ResourceQuotaObject]:
    try:
        return [msgspec.json.decode(item, type=ResourceQuotaObject)]
    except UNREADABLE_JSON:
        return []


@fuzzes(shared_nodes, read_pending_pod, quota_limits, few=100)
@given(
    encoded(st.sampled_from(NODES).flatmap(mutated)),
    encoded(st.sampled_from(PODS).flatmap(mutated)),
    encoded(mutated(QUOTA)),
)
def test_a_cluster_of_any_shape_is_shown(node: bytes, pod: bytes, quota: bytes) -> None:
    pods = [read for item in (Raw(pod), raw(PODS[0])) if (read := read_pending_pod(item))]
    reading = ClusterReading(share_nodes=[Raw(node), raw(NODES[0])], pending=pods)
    nodes = shared_nodes(reading)
    assert "n1" in {found.name for found in nodes}
    holdings = pod_holdings(nodes, reading, {})
    page = page_of_width(80, is_wide=True)
    inspection = card_inspection(nodes, InspectionChoice(sort=InspectionSort.HELD))
    held = pods_report(holdings, namespace="", sort=PodSort.HELD, now=NOW)
    by_namespace = namespaces_report(holdings, nodes, quotas_of(quota))
    used = top_report(nodes, of=TopOf.PODS, sort=TopSort.SHARE)
    texts = [
        drawn(inspection_view(inspection, page), page),
        drawn(pods_view(held, page), page),
        drawn(namespaces_view(by_namespace, page), page),
        drawn(top_view(used, page), page),
    ]
    assert not any("\x1b" in text for text in texts)
    for report in (inspection, held, by_namespace, used):
        assert msgspec.json.decode(document_text(report, Format.JSON))["kind"] == report.kind
