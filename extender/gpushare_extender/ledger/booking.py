"""What pods have of one card. Small: a cluster has tens of thousands of cards, and most of them one pod."""

import msgspec


class Booking(msgspec.Struct, frozen=True, gc=False):
    """One pod's, and the other pods'. A fourth of the size of a dictionary with one entry."""

    uid: str
    units: int
    others: "Booking | None" = None


Bookings = Booking | None
"""Of all pods of a card; no pod is in it twice."""


def units_by_pod(bookings: Bookings) -> dict[str, int]:
    """Returns pod UID -> units; the caller may change it."""
    units: dict[str, int] = {}
    while bookings is not None:
        units[bookings.uid] = bookings.units
        bookings = bookings.others
    return units


def bookings_of(units: dict[str, int]) -> Bookings:
    """Returns what ``units_by_pod`` returns ``units`` for."""
    bookings: Bookings = None
    for uid in reversed(units):
        bookings = Booking(uid, units[uid], bookings)
    return bookings


def units_booked(bookings: Bookings, uid: str) -> int:
    """Returns the units of one pod; 0 for one that is not in it."""
    while bookings is not None:
        if bookings.uid == uid:
            return bookings.units
        bookings = bookings.others
    return 0


def with_units(bookings: Bookings, uid: str, units: int) -> Bookings:
    """Returns ``bookings`` with so many units more of a pod."""
    if bookings is None:
        return Booking(uid, units)
    by_pod = units_by_pod(bookings)
    by_pod[uid] = by_pod.get(uid, 0) + units
    return bookings_of(by_pod)


def without_pod(bookings: Bookings, uid: str) -> Bookings:
    """Returns ``bookings`` of the other pods."""
    by_pod = units_by_pod(bookings)
    by_pod.pop(uid, None)
    return bookings_of(by_pod)
