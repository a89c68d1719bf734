"""By which labels nodes can be grouped."""

from gpushare_cli.decide.web.groups import MAX_GROUPS, MAX_LABELS, group_labels, groups_of

RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"


def nodes(count: int, **labels: int) -> dict[str, dict[str, str]]:
    """``labels``: into how many values each divides the nodes."""
    return {f"n{at}": {key: str(at % values) for key, values in labels.items()} for at in range(count)}


def test_labels_that_divide_nodes_into_groups() -> None:
    assert group_labels(nodes(12, pool=3, hostname=12, arch=1), "") == ["pool"]


def test_the_likeliest_come_first() -> None:
    found = {
        name: {"a": f"{at % 2}", ZONE: f"{at % 2}", RACK: f"{at % 3}"} for at, name in enumerate("abcdef")
    }
    assert group_labels(found, "") == [RACK, ZONE, "a"]


def test_the_label_that_was_asked_for_comes_first_whatever_it_is() -> None:
    assert group_labels(nodes(12, pool=3, hostname=12), "hostname") == ["hostname", "pool"]
    assert group_labels({}, "example.com/none") == ["example.com/none"]


def test_there_are_so_many_labels_and_groups_at_most() -> None:
    assert len(group_labels(nodes(8, **{f"l{at}": 2 for at in range(30)}), "")) == MAX_LABELS
    assert group_labels(nodes(4 * MAX_GROUPS, many=MAX_GROUPS + 1), "") == []


def test_a_node_has_the_chosen_labels_that_it_has() -> None:
    assert groups_of({RACK: "r1", "other": "x"}, [RACK, ZONE]) == {RACK: "r1"}
