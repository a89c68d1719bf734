"""The causes, in the order in which people want to know them."""

from collections.abc import Callable, Iterable

from gpushare_cli.decide.why.causes.admission import node_by_hand, refused
from gpushare_cli.decide.why.causes.amounts import too_much, written_amounts
from gpushare_cli.decide.why.causes.cards import (
    cards_that_do_not_fit,
    cards_with_room,
    closed_cards_with_room,
    impossible_pods,
    others_come_first,
)
from gpushare_cli.decide.why.causes.containers import (
    handwritten_annotations,
    handwritten_variables,
    privileged,
)
from gpushare_cli.decide.why.causes.names import asks_for_cards, unserved_names
from gpushare_cli.decide.why.causes.nodes import isolation_unavailable, nodes_kept_from, not_computed
from gpushare_cli.decide.why.causes.pod_state import being_deleted, evicted_before, gated
from gpushare_cli.decide.why.causes.policy import (
    missing_policy,
    nodes_off,
    policies_not_ready,
    scheduler_not_connected,
    unit_changes,
)
from gpushare_cli.decide.why.causes.quota import quotas_exceeded
from gpushare_cli.decide.why.causes.resources import missing_resources
from gpushare_cli.decide.why.causes.scheduler import extender_away, operator_away, schedulers
from gpushare_cli.decide.why.causes.volumes import claims_not_bound
from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.situation import PodSituation

Cause = Callable[[PodSituation], Iterable[Finding]]


def _of_a_pod_that_is_created(cause: Cause) -> Cause:
    """A pod that the API server refuses is never placed: what placing it takes would only distract."""
    return lambda situation: () if situation.cluster.refusal else cause(situation)


def _of_cards(cause: Cause) -> Cause:
    """What keeps nodes from sharing their cards does not keep a pod that asks for none."""
    return lambda situation: cause(situation) if asks_for_cards(situation) else ()


_OF_CREATION: tuple[Cause, ...] = (
    written_amounts,
    handwritten_variables,
    quotas_exceeded,
    refused,
    _of_cards(missing_policy),
    unserved_names,
)
_OF_PLACING: tuple[Cause, ...] = (
    being_deleted,
    gated,
    _of_cards(nodes_off),
    _of_cards(nodes_kept_from),
    schedulers,
    _of_cards(extender_away),
    _of_cards(policies_not_ready),
    impossible_pods,
    too_much,
    missing_resources,
    claims_not_bound,
    _of_cards(isolation_unavailable),
    cards_with_room,
    others_come_first,
    closed_cards_with_room,
    cards_that_do_not_fit,
    _of_cards(unit_changes),
    _of_cards(scheduler_not_connected),
    _of_cards(operator_away),
    not_computed,
    _of_cards(node_by_hand),
    privileged,
    handwritten_annotations,
    evicted_before,
)
CAUSES: tuple[Cause, ...] = (*_OF_CREATION, *map(_of_a_pod_that_is_created, _OF_PLACING))
"""Each looks at the facts, and says what it finds."""
