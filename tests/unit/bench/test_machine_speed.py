"""How fast the machine is, beside figures that depend on it."""

from itertools import count

from bench.measuring.machine_speed import MachineSpeed, one_circle


def test_it_is_told_from_the_fastest_look_to_the_slowest() -> None:
    seconds = iter([0.3, 0.1, 0.25, 0.2, 0.205, 0.4, 0.5, 0.45])  # two tries of each, at two looks
    passed = [0.0]

    def clock() -> float:
        """Each second reading comes so much later as the try takes."""
        passed[0] += next(seconds) if next(readings) % 2 else 0.0
        return passed[0]

    readings = count()
    speed = MachineSpeed(rounds=3, clock=clock)
    speed.look()
    speed.look()
    assert str(speed) == (
        "Between the rows a core did 3 additions in Python in 100 to 205 ms,"
        " and as many reads of memory in 200 to 450 ms."
    )


def test_reading_comes_by_every_place_once() -> None:
    following, place = one_circle(100), 0
    seen = list[int]()
    for _ in range(100):
        place = following[place]
        seen.append(place)
    assert sorted(seen) == [*range(100)]
