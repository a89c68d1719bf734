"""A load on simulated cards, as pods are annotated with it."""

import pytest
from tests.samples.plugin import GIB, card

from gpushare_core.api.names import SIMULATED_LOAD_ANNOTATION
from gpushare_plugin.decide.held.pods import MAX_LOAD, read_metadata
from gpushare_plugin.devices.simulated.use import SimulatedUse, read_load
from gpushare_plugin.devices.use import Load, Use, UseQuestion

CARDS = [card(0), card(1)]


def load(text: str, **containers: list[str]) -> Load:
    held = containers or {"main": ["GPU-0"]}
    return Load(pod="default/a", uid="uid-a", containers=held, text=text)


async def measured(*loads: Load, by_container: bool = True) -> Use:
    question = UseQuestion(cards=CARDS, by_container=by_container, interval=30, loads=loads)
    return await SimulatedUse().measure(question)


def by_holding(use: Use) -> dict[tuple[str, str], int]:
    return {(container.container, container.card): container.used for container in use.containers}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("3Gi", {"": 3 * GIB}, id="of each container"),
        pytest.param("main=3Gi", {"main": 3 * GIB}, id="of one"),
        pytest.param("main=3Gi, other=512Mi", {"main": 3 * GIB, "other": GIB // 2}, id="of several"),
        pytest.param("1Gi,main=0", {"": GIB, "main": 0}, id="of one, and of the others"),
        pytest.param("", {}, id="none"),
    ],
)
def test_a_load_is_a_size_or_sizes_by_container(text: str, expected: dict[str, int]) -> None:
    assert read_load(text) == expected


@pytest.mark.parametrize("text", ["much", "main=", "main:3Gi", "-1Gi", "1.5", "3Gi=main", "main=3Gi;b=1Gi"])
def test_a_load_that_makes_no_sense_says_what_does(text: str) -> None:
    with pytest.raises(ValueError, match="use a size such as 3Gi"):
        read_load(text)


async def test_containers_use_what_is_said_of_them() -> None:
    use = await measured(load("1Gi,x=2Gi", x=["GPU-0"], y=["GPU-1"]))
    assert by_holding(use) == {("x", "GPU-0"): 2 * GIB, ("y", "GPU-1"): GIB}
    assert use.cards == {"GPU-0": 2 * GIB, "GPU-1": GIB}


async def test_a_load_lies_evenly_on_the_cards_of_a_container() -> None:
    assert by_holding(await measured(load("6Gi", main=["GPU-0", "GPU-1"]))) == {
        ("main", "GPU-0"): 3 * GIB,
        ("main", "GPU-1"): 3 * GIB,
    }


async def test_a_card_is_never_fuller_than_full() -> None:
    assert (await measured(load("12Gi"), load("9Gi"))).cards == {"GPU-0": 16 * GIB, "GPU-1": 0}


async def test_a_load_that_makes_no_sense_is_ignored_and_told() -> None:
    use = await measured(load("much"), load("2Gi"))
    assert use.cards["GPU-0"] == 2 * GIB
    assert [warning.split(":")[0] for warning in use.warnings] == [
        "the simulated load of pod default/a is ignored"
    ]


async def test_containers_are_told_only_where_they_are_asked_for() -> None:
    use = await measured(load("2Gi"), by_container=False)
    assert (use.cards["GPU-0"], list(use.containers)) == (2 * GIB, [])


def test_a_long_annotation_takes_no_memory_of_the_plugin() -> None:
    metadata = {"name": "a", "namespace": "default", "uid": "u"}
    metadata["annotations"] = {SIMULATED_LOAD_ANNOTATION: "x" * 262_000}  # type: ignore[assignment]
    assert len(read_metadata({"metadata": metadata}, "key").simulated_load) == MAX_LOAD
