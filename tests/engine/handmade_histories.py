"""Cases made by hand about what still counts after something changed."""

from collections.abc import Iterator
from typing import Any

from tests.engine.shapes import MEMORY, card, cards, given, history, node, one, pod

from gpushare_core.text.json_object import Json


def histories() -> Iterator[Json]:
    def share(name: str, **fields: Any) -> Json:
        return {"share": node(name, "Memory", [*cards(name, 16), card(f"{name}-1", 16, **fields)])}

    both, mine = (share("n1"), share("n2")), pod("u", "n1", {"n1-1": 4})
    shown, gone, expire = share("n1", **given("u", 4)), {"gone": "u"}, {"expire": True}
    bound, elsewhere = {"pod": mine}, {"pod": pod("u", "n1", {"n2-1": 8}, named="n2")}
    blank = {"pod": {"uid": "u", "node": "n1", "annotations": {}}}
    forged = {"pod": {**mine, "uid": "u", "annotations": pod("w", "n1", {"n1-0": 1})["annotations"]}}
    ask = {"reserve": {"uid": "r", "node": "n1", "spec": one(MEMORY, 5)}}
    late, much_later = {**expire, "at": 100_000}, {**expire, "at": 200_000}
    yield history("gone before its plugin told of it", *both, bound, gone, expire, late)
    yield history(
        "gone, and its plugin tells of it then", *both, bound, gone, shown, late, much_later, share("n1")
    )
    yield history(
        "gone, and its plugin tells of a part", *both, bound, gone, share("n1", **given("u", 2)), late
    )
    yield history("gone after its plugin told of it", *both, bound, shown, gone, share("n1"))
    yield history("given back before it is gone", *both, bound, shown, share("n1"), gone)
    yield history(
        "given back, and told of a part alone", *both, bound, share("n1", **given("u", 2)), share("n1"), gone
    )
    yield history("deleted by force, and kept by the kubelet", *both, bound, shown, gone, late, much_later)
    yield history("an annotation that is gone", *both, bound, blank, gone, late)
    yield history("an annotation of another pod", *both, bound, forged, gone, late)
    yield history(
        "an annotation that names another node", *both, bound, elsewhere, share("n2", **given("u", 8)), gone
    )
    yield history(
        "an annotation that names another node, and back", *both, bound, elsewhere, bound, shown, gone
    )
    yield history("gone while it counts on two nodes", *both, bound, elsewhere, gone, shown, late)
    yield history("first seen with another node", *both, elsewhere, gone, late)
    yield history(
        "a node without a GPUShareNode", bound, share("n1"), {"drop": "n1"}, shown, {"drop": "n1"}, gone, late
    )
    yield history(
        "a reservation that becomes an allocation",
        *both,
        ask,
        {"pod": pod("r", "n1", {"n1-0": 5})},
        {"release": "r"},
    )
    yield history("a reservation that is given up", *both, ask, {"release": "r"}, ask)
    yield history(
        "a reservation of other cards than the allocation", *both, ask, {"pod": pod("r", "n1", {"n1-1": 5})}
    )
    yield history("what does not fit is not reserved", share("n1", **given("u", 16)), bound, ask, ask)
    yield history("seen again after it was gone", *both, bound, gone, bound, late)
    half = share("n1", **given("u", 2))
    lent = share("n1", **given("u", 2, 2, allocated=2))
    yield history("gone, and told of as lending less than it has", *both, bound, lent, gone, late)
    yield history(
        "gone, and told of in two containers",
        *both,
        bound,
        share("n1", **given("u", 2, 2)),
        gone,
        share("n1"),
    )
    yield history("gone while its plugin tells of it, and seen again", *both, bound, shown, gone, bound)
    yield history(
        "given back, gone, seen again and gone", *both, bound, shown, share("n1"), gone, bound, gone, late
    )
    yield history(
        "back on the first node, and told of a part", *both, bound, elsewhere, bound, half, gone, late
    )
    exact = [step | {"at": at} for at, step in ((0, share("n1")), (125, bound), (1000, gone))]
    counts = [{**expire, "at": at} for at in (4875, 5000)]
    yield history("gone for as long as its plugin may take", *exact, *counts)
    waits = [step | {"at": at} for at, step in ((0, share("n1")), (125, bound), (250, shown), (1000, gone))]
    yield history(
        "kept by the kubelet for a minute", *waits, *({**expire, "at": at} for at in (60_875, 61_000))
    )
    legacy = {
        "uid": "u",
        "node": "n1",
        "annotations": {"volcano.sh/gpu-index": "1"},
        "spec": one("volcano.sh/gpu-memory", 3),
    }
    volcano = node("n1", "Memory", cards("n1", 16, 16), spec={"dialect": "volcano.sh"}, dialect="volcano.sh")
    yield history(
        "a replaced system's pod before its node",
        {"pod": legacy},
        {"share": volcano},
        share("n1"),
        gone,
        late,
    )
    yield history("a replaced system's pod, annotated then", {"share": volcano}, {"pod": legacy}, bound, gone)
    alien = {"pod": pod("u", "n1", {"n2-1": 8}, named="n2")}
    only = {"share": volcano}, share("n2")
    yield history(
        "a replaced system's pod, annotated with another node before", *only, alien, {"pod": legacy}, gone
    )
    replaced = {"pod": legacy}
    yield history(
        "an annotation that a replaced system's one replaces", {"share": volcano}, bound, replaced, gone
    )
    yield history("a replaced system's pod that is gone at once", {"pod": legacy}, gone, {"share": volcano})
