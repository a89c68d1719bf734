"""The auditor's questions: where do these books differ?"""

from collections.abc import Iterable

from gpushare_core.audit.books import Books, NodeBooks, ShareNodeBook
from gpushare_core.audit.difference import Difference


def differences(books: Books) -> list[Difference]:
    """Returns everything in ``books`` that is not as it must be, sorted; empty when all books agree.

    Books that were not read are not compared. While pods are on their way only those count whose
    ``kind.at_once`` says so; and as books are never read in one instant, what is seen once is a difference
    only when it is seen again: see ``seen_twice``.
    """
    found = [each for node in books.nodes.values() for each in node_differences(node)]
    return sorted(found)


def node_differences(books: NodeBooks) -> list[Difference]:
    """Returns what is not as it must be on one node by its own books alone, sorted."""
    return []


def status_differences(share_node: ShareNodeBook) -> list[Difference]:
    """Returns what is not as it must be in one GPUShareNode alone.

    It depends on nothing else: who asks of thousands of nodes remembers the answer by resourceVersion.
    """
    return node_differences(NodeBooks(node=share_node.name, share_node=share_node))


def released_early(before: NodeBooks, after: NodeBooks) -> list[Difference]:
    """Returns the units that a book counted ``before`` and does not ``after``, although the kubelet holds
    them for the same container all along.

    In each the kubelet's books have to be read last.
    """
    return []


def seen_twice(before: Iterable[Difference], after: Iterable[Difference]) -> list[Difference]:
    """Returns those of ``after`` that were there ``before``: no trace of reading one book after another."""
    known = {each.identity for each in before}
    return [each for each in after if each.identity in known]
