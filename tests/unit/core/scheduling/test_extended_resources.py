"""Whether any node has so much, told without a look at each."""

import random

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.scheduling.ledger.extended_resources import Greatest

NAME = next(iter(RESOURCES))


def test_the_most_is_that_of_the_best_node_whatever_came_and_went() -> None:
    greatest, chance, nodes = Greatest(), random.Random(1), dict[str, int]()  # noqa: S311
    for _ in range(2000):
        node = f"n{chance.randrange(20)}"
        if node in nodes and chance.random() < 0.3:
            greatest.drop(NAME, node)
            del nodes[node]
        else:
            amount = chance.randrange(8)
            assert greatest.set(NAME, node, amount) == nodes.get(node, 0)
            nodes[node] = amount
        assert greatest.most(NAME) == max(nodes.values(), default=0)
        assert greatest.by_name[NAME] == nodes


def test_a_resource_that_no_node_serves_has_nothing() -> None:
    assert all(Greatest().most(name) == 0 for name in RESOURCES)
