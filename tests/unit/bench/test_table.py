"""Which rows there are, and what is refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from bench.__main__ import measure, parse
from bench.measuring.figures import Figure, at_most
from bench.measuring.runner import Row, Selection, Stage, selected
from bench.measuring.size import FULL, QUICK, Size, with_nodes
from bench.rows.table import names, stages

ROWS = {
    "start",
    "memory",
    "filter",
    "allocate",
    "plugin",
    "hook",
    "web",
    "scale",
    "ordinary",
    "create",
    "writes",
    "shared",
    "algorithm",
    "cpu",
    "storm",
    "pending",
    "candidates",
    "one-node",
    "cli",
    "churn",
    "policy",
    "changes",
    "no-op",
    "engine-shared",
    "engine-shared-extender",
    "engine-shared-claims",
    "engine-waiting-1000",
    "engine-waiting-5000",
    "engine-attempts",
    "engine-attempts-extender",
    "engine-preemption",
    "engine-preemption-extender",
    "engine-storm",
    "engine-storm-extender",
    "engine-bursts",
    "engine-bursts-extender",
    "engine-one-node",
    "engine-one-node-extender",
    "engine-ordinary",
    "engine-memory",
    "engine-churn",
}


def measured(size: Size, name: str) -> list[str]:
    """Returns the stages in which a row is measured."""
    return [stage.name for stage in stages(size) if name in {row.name for row in stage.rows}]


def test_every_target_has_a_row() -> None:
    assert set(names()) == ROWS


def test_quick_measures_all_but_what_tells_nothing_in_small() -> None:
    left_out = {"candidates", "churn", "engine-churn", "engine-waiting-5000", "scale"}
    assert {row.name for stage in stages(QUICK) for row in stage.rows} == ROWS - left_out


@pytest.mark.parametrize("size", [pytest.param(QUICK, id="quick"), pytest.param(FULL, id="full")])
def test_shared_pods_are_measured_without_limits_and_ordinary_ones_with_each_backend(size: Size) -> None:
    shared, ordinary = measured(size, "shared"), measured(size, "ordinary")
    for nodes in size.nodes:
        clients = [title for title in shared if title.startswith(f"{nodes:,} nodes, backend KubeScheduler")]
        assert ["unlimited" in client for client in clients] == [True] + [False] * (nodes in size.limited)
        backends = [title.split(",")[-2] for title in ordinary if title.startswith(f"{nodes:,} nodes")]
        others = [
            " backend Dedicated",
            " backend Dedicated with engine Plugin",
            " backend KubeScheduler with engine Plugin",
        ]
        assert backends == [" backend KubeScheduler", *(others if nodes in size.dedicated else [])]


def test_both_backends_are_measured_at_each_size_of_full_and_one_at_quick() -> None:
    assert FULL.dedicated == FULL.nodes
    assert [stage.name for stage in stages(QUICK)] == [
        "without a cluster",
        "100 nodes, backend KubeScheduler, its client unlimited",
        "100 nodes, engines beside plain pods",
        "200 bare nodes, backend External",
    ], "each cluster takes a minute and more"


def test_shared_pods_are_measured_with_the_default_client_as_well_at_size_full() -> None:
    assert "100 nodes, backend KubeScheduler, its client with its default of 50/s" in measured(FULL, "shared")


def test_the_first_row_of_a_cluster_is_the_one_that_begins_without_us() -> None:
    for stage in stages(FULL):
        found = [row.name for row in stage.rows]
        assert "ordinary" not in found[1:], stage.name


def test_one_node_is_looked_for_among_the_most_nodes() -> None:
    assert measured(FULL, "one-node") == [
        "5,000 nodes, backend KubeScheduler, its client unlimited",
        "5,000 nodes, backend Dedicated, the stock client unlimited",
    ]
    assert measured(FULL, "churn") == ["1,000 nodes, backend KubeScheduler, its client unlimited"]


def test_pods_that_do_not_fit_wait_for_another_scheduler_where_the_stock_one_samples_nodes() -> None:
    dedicated = [title for title in measured(FULL, "pending") if "Dedicated" in title]
    assert [title.split()[0] for title in dedicated] == ["1,000", "5,000"]
    assert not any("Dedicated" in title for title in measured(QUICK, "pending"))


def test_engines_are_compared_at_each_size_and_both_are_exact() -> None:
    at_most = [f"{nodes} nodes, engines beside plain pods" for nodes in ("100", "1,000", "5,000")]
    assert measured(FULL, "engine-shared") == at_most
    assert measured(FULL, "engine-memory") == measured(FULL, "engine-one-node") == at_most[-1:]
    assert measured(FULL, "engine-churn") == ["1,000 nodes, engines beside plain pods"]
    (stage,) = selected(stages(QUICK), Selection(only=frozenset({"engine-storm*"})))
    assert [row.title.split(", ")[1] for row in stage.rows] == ["engine Plugin", "engine Extender"]


def test_one_engine_may_be_measured_alone() -> None:
    others = frozenset({"*-extender", "*-claims"})
    (stage,) = selected(stages(QUICK), Selection(only=frozenset({"engine-*"}), skip=others))
    titles = [row.title for row in stage.rows]
    assert "Shared pods beside plain ones, engine Plugin" in titles
    assert not any(name in title for name in ("Extender", "DRA") for title in titles)


def test_churn_is_on_the_largest_cluster_where_its_own_is_not_among_them() -> None:
    assert [with_nodes(FULL, nodes).churn_nodes for nodes in ([100, 1000], [100, 200])] == [1000, 200]
    assert measured(with_nodes(FULL, [100]), "engine-churn") == ["100 nodes, engines beside plain pods"]


def test_pods_wait_in_the_numbers_of_the_size() -> None:
    (stage,) = selected(stages(with_nodes(FULL, [1000])), Selection(only=frozenset({"engine-waiting-*"})))
    assert [row.title for row in stage.rows] == [
        "Beside 1,000 pods that cannot be bound",
        "Beside 5,000 pods that cannot be bound",
    ]


def test_nodes_may_be_named_instead_of_those_of_the_size() -> None:
    options = parse(["--size", "full", "--nodes", "1000,100"])
    assert options.nodes == (100, 1000)
    size = with_nodes(FULL, options.nodes)
    assert (size.nodes, size.limited, size.dedicated, size.one_of) == ((100, 1000), (100,), (100, 1000), 1000)
    assert with_nodes(FULL, parse(["--nodes", ""]).nodes) is FULL, "make passes an empty list"


@pytest.mark.parametrize("text", ["many", "100,0", "-5"])
def test_numbers_of_nodes_have_to_be_some(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([f"--nodes={text}"])
    assert "--nodes" in capsys.readouterr().err


def test_rows_without_a_cluster_start_none() -> None:
    chosen = selected(stages(QUICK), Selection(only=frozenset({"start", "filter"})))
    assert [stage.name for stage in chosen] == ["without a cluster"]


def test_a_row_that_is_none_is_refused_with_the_names_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(["--skip", "churn,shred"])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert "no row is called shred" in said
    assert "one-node" in said


def test_make_passes_empty_lists() -> None:
    options = parse(["--size", "full", "--rows", "", "--skip", "churn"])
    assert (options.size, options.rows, options.skip) == ("full", "", "churn")


async def _good(_: None) -> list[Figure]:
    return [Figure("x", 2.0, target=at_most(1))]


async def _interrupted(_: None) -> list[Figure]:
    raise KeyboardInterrupt


@asynccontextmanager
async def _nowhere() -> AsyncIterator[None]:
    yield None


def test_an_interruption_keeps_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (Row("good", "Good", _good), Row("cut", "Cut", _interrupted), Row("never", "Never", _good))
    assert measure([Stage("nowhere", _nowhere, rows)]) == 1
    said = capsys.readouterr().out
    assert "### Good (good; nowhere)" in said
    assert "interrupted: the rows that are not shown are not measured" in said
    assert "0 of 1 targets reached" in said


def test_a_missed_target_is_no_failure_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert measure([Stage("nowhere", _nowhere, (Row("good", "Good", _good),))]) == 0
    assert "- missed: x: 2, target <= 1" in capsys.readouterr().out
