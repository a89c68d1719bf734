"""The ledger goes by the names of extended resources: nodes of other dialects serve others."""

from msgspec.structs import replace
from tests.samples.extender import RESOURCE, asked, share_node

from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger

SLICE = "gpushare.io/slice"


def test_a_node_that_serves_another_name_for_the_same_class_does_not_fit() -> None:
    ledger = Ledger()
    ledger.set_share_node(share_node("n1"))
    foreign = ResourceRequest("example.com/memory", ResourceClass.MEMORY, 4, {"main": 4})
    reason = ledger.unfit_reason("n1", foreign)
    assert reason.message == "node(s) that serve gpushare.io/memory, and the pod asks for example.com/memory"
    assert not reason.resolvable


def test_each_node_is_indexed_under_what_it_serves() -> None:
    ledger = Ledger()
    other = replace(share_node("n2"), resources={SLICE: ResourceClass.MEMORY})
    ledger.replace_share_nodes([share_node("n1"), other])
    assert {name: nodes for name, nodes in ledger.greatest.items() if nodes} == {
        RESOURCE: {"n1": 16},
        SLICE: {"n2": 16},
    }
    result = filter_nodes(ledger, ["n1", "n2"], uid="p", request=PodRequest((asked(4),)))
    assert (result.passing, list(result.unresolvable)) == (["n1"], ["n2"])
