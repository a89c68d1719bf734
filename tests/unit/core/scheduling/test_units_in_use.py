"""What is in use of a card, summed up in one pass: the same as its definition, sum by sum."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.scheduling.objects.share_node import ReportedHolder, ShareNodeCard

UIDS = ["a", "b", "c", "d"]
AMOUNTS = st.integers(0, 12)


def as_defined(card: ShareNodeCard, booked: Mapping[str, int]) -> int:
    given_units = card.given(booked)
    both = [holder for holder in card.holders if holder.uid in booked]
    total = max(card.allocated, sum(holder.least for holder in card.holders))
    named = sum(holder.units for holder in card.holders)
    others = max(total, named) - sum(holder.units for holder in both)
    most = total - sum(holder.least for holder in both)
    by_pod = sum(max(booked[holder.uid], given_units[holder.uid]) for holder in both)
    not_given = sum(units for uid, units in booked.items() if uid not in given_units)
    return max(by_pod + min(others, most), total) + not_given


@st.composite
def cards(draw: st.DrawFn) -> ShareNodeCard:
    holders = []
    for uid in draw(st.lists(st.sampled_from(UIDS), unique=True)):
        containers = draw(st.lists(AMOUNTS, min_size=1, max_size=3))
        holders.append(ReportedHolder(uid, "default", uid, sum(containers), max(containers)))
    return ShareNodeCard("c", 0, 16, healthy=True, allocated=draw(AMOUNTS), holders=tuple(holders))


@given(card=cards(), booked=st.dictionaries(st.sampled_from(UIDS), AMOUNTS))
def test_the_sum_is_the_one_that_is_defined(card: ShareNodeCard, booked: dict[str, int]) -> None:
    assert card.units_in_use(booked) == as_defined(card, booked)
