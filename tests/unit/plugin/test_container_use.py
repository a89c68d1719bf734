"""Processes of a card are joined to the containers that have units of it."""

from dataclasses import replace

from tests.samples.plugin import GIB, container, layout, name_of, pod

from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.use.cgroups import CgroupOwner
from gpushare_plugin.decide.use.container_use import (
    ContainerShare,
    loads,
    measured_use,
    requested_memory,
    unnamed_owners,
)
from gpushare_plugin.devices.use import ContainerUse, ProcessUse, Use

UIDS = {name: f"{name * 8}-0000-4000-8000-{name * 12}" for name in "abcd"}
X, Y, STRANGE = (digit * 64 for digit in "123")


def held(name: str, **containers: dict[str, int]) -> PodAllocation:
    asking = [container(name, sum(shares.values())) for name, shares in containers.items()]
    cards: dict[str, int] = {}
    for shares in containers.values():
        cards = {card: cards.get(card, 0) + units for card, units in (cards | shares).items()}
    return PodAllocation(replace(pod(name, *asking), uid=UIDS[name]), dict(containers), cards)


def process(pod_name: str, identifier: str, used: int, *, card: str = "GPU-0", below: str = "") -> ProcessUse:
    uid = UIDS.get(pod_name, pod_name)
    return ProcessUse(card=card, used=used, cgroup=f"{below}0::/kubepods/burstable/pod{uid}/{identifier}\n")


def key(name: str, container_name: str, card: str = "GPU-0") -> ContainerShare:
    return ContainerShare(name_of(name), UIDS[name], container_name, card)


ALONE = held("a", main={"GPU-0": 4})
TWO = held("b", x={"GPU-0": 4}, y={"GPU-0": 2})


def used(use: Use, *allocations: PodAllocation, **names: str) -> dict[ContainerShare, int]:
    known = {CgroupOwner(UIDS["b"], identifier): name for name, identifier in names.items()}
    return dict(measured_use(use, layout(), allocations, known).containers)


def test_processes_of_the_only_holder_of_a_pod_need_no_name() -> None:
    use = Use(processes=[process("a", X, 5), process("a", X, 7)])
    assert used(use, ALONE) == {key("a", "main"): 12}
    assert unnamed_owners(use, layout(), [ALONE], {}) == {}


def test_processes_of_one_of_several_holders_need_its_name() -> None:
    use = Use(processes=[process("b", X, 5), process("b", Y, 7), process("b", STRANGE, 9)])
    assert used(use, TWO) == {}
    assert unnamed_owners(use, layout(), [TWO], {}) == {
        CgroupOwner(UIDS["b"], container_id): name_of("b") for container_id in (X, Y, STRANGE)
    }
    assert used(use, TWO, x=X, y=Y) == {key("b", "x"): 5, key("b", "y"): 7}


def test_a_container_of_the_pod_without_units_is_nobody_where_names_are_known() -> None:
    names = {CgroupOwner(UIDS["b"], STRANGE): "helper"}
    use = Use(processes=[process("b", STRANGE, 9)])
    assert measured_use(use, layout(), [TWO], names).containers == {}
    assert unnamed_owners(use, layout(), [TWO], names) == {}


def test_others_count_for_the_card_alone() -> None:
    use = Use(
        cards={"GPU-0": 20},
        processes=[
            ProcessUse(card="GPU-0", used=5, cgroup="0::/system.slice/x.service\n"),
            ProcessUse(card="GPU-0", used=5, cgroup=""),
            process("c", X, 5),
            process("a", X, 5, card="GPU-1"),
        ],
    )
    measured = measured_use(use, layout(), [ALONE], {})
    assert (measured.cards, measured.containers) == ({"GPU-0": 20}, {})


def test_a_static_pod_is_known_by_the_kubelets_name_for_it() -> None:
    digest = "8f2b1c0d" * 4
    static = replace(ALONE, pod=replace(ALONE.pod, static_uid=digest))
    assert used(Use(processes=[process(digest, X, 5)]), static) == {key("a", "main"): 5}


def test_of_a_node_within_a_pod_the_outer_pod_has_the_units() -> None:
    inner = f"pod{UIDS['c']}/{Y}"
    nested = ProcessUse(card="GPU-0", used=5, cgroup=f"0::/kubepods/pod{UIDS['a']}/{X}/kubepods/{inner}\n")
    assert used(Use(processes=[nested]), ALONE) == {key("a", "main"): 5}


def test_the_plugins_own_node_may_run_within_a_pod_of_another_cluster() -> None:
    nested = ProcessUse(
        card="GPU-0", used=5, cgroup=f"0::/kubepods/pod{UIDS['d']}/{Y}/kubepods/pod{UIDS['a']}/{X}\n"
    )
    assert used(Use(processes=[nested]), ALONE) == {key("a", "main"): 5}


def test_a_source_may_know_containers_by_name() -> None:
    uses = [
        ContainerUse(uid=UIDS["b"], container="y", card="GPU-0", used=5),
        ContainerUse(uid=UIDS["b"], container="helper", card="GPU-0", used=5),
    ]
    assert used(Use(containers=uses), TWO) == {key("b", "y"): 5}


def test_what_was_asked_for_is_what_the_units_are_worth() -> None:
    assert requested_memory(layout(), [TWO, held("c", main={"GPU-9": 1})]) == {
        key("b", "x"): 4 * GIB,
        key("b", "y"): 2 * GIB,
    }


def test_only_annotated_pods_have_a_load_to_simulate() -> None:
    loaded = replace(TWO, pod=replace(TWO.pod, simulated_load="3Gi"))
    (load,) = loads([ALONE, loaded])
    assert (load.pod, load.uid, load.text) == ("default/b", UIDS["b"], "3Gi")
    assert load.containers == {"x": ["GPU-0"], "y": ["GPU-0"]}
