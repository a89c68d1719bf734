"""What pods have of one card. Small: a cluster has tens of thousands of cards, most of them with one pod."""

import msgspec


class Booking(msgspec.Struct, frozen=True, gc=False):
    """What one pod has, and a link to what the others have: a quarter of a dictionary with one entry."""

    uid: str
    units: int
    others: "Booking | None" = None


Bookings = Booking | None
"""What all pods have of a card; no pod is in it twice."""


def units_by_pod(bookings: Bookings) -> dict[str, int]:
    """Returns pod UID -> units, in a new dictionary."""
    units: dict[str, int] = {}
    while bookings is not None:
        units[bookings.uid] = bookings.units
        bookings = bookings.others
    return units


def bookings_of(units: dict[str, int]) -> Bookings:
    """The inverse of ``units_by_pod``."""
    bookings: Bookings = None
    for uid in reversed(units):
        bookings = Booking(uid, units[uid], bookings)
    return bookings


def units_booked(bookings: Bookings, uid: str) -> int:
    while bookings is not None:
        if bookings.uid == uid:
            return bookings.units
        bookings = bookings.others
    return 0


def with_units(bookings: Bookings, uid: str, units: int) -> Bookings:
    """Returns ``bookings`` with so many more units of a pod."""
    if bookings is None:
        return Booking(uid, units)
    by_pod = units_by_pod(bookings)
    by_pod[uid] = by_pod.get(uid, 0) + units
    return bookings_of(by_pod)


def without_pod(bookings: Bookings, uid: str) -> Bookings:
    by_pod = units_by_pod(bookings)
    by_pod.pop(uid, None)
    return bookings_of(by_pod)
