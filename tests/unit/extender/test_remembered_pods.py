"""What is remembered of a limited number of pods."""

from gpushare_extender.decide.remembered_pods import RememberedPods


def test_beyond_the_limit_the_pod_remembered_longest_ago_is_forgotten() -> None:
    pods = RememberedPods[int](most=2)
    assert [pods.remember("a", 1), pods.remember("b", 2), pods.remember("a", 3)] == [None, None, None]
    assert pods.remember("c", 4) == ("b", 2)
    assert [*pods.items()] == [("a", 3), ("c", 4)]


def test_old_ones_are_forgotten_up_to_the_first_that_is_not() -> None:
    pods = RememberedPods[int](most=9)
    for uid, moment in (("a", 1), ("b", 2), ("c", 9), ("d", 1)):
        pods.remember(uid, moment)
    pods.forget_while(lambda moment: moment < 5)
    assert [*pods] == ["c", "d"]


def test_none_is_left_where_all_are_old() -> None:
    pods = RememberedPods[int](most=9)
    pods.remember("a", 1)
    pods.forget_while(lambda _: True)
    assert not pods
