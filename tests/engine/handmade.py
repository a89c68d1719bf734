"""The cases that were made by hand: each is about one rule, and its name says which."""

from collections.abc import Iterator
from itertools import chain

from tests.engine.handmade_histories import histories
from tests.engine.handmade_nodes import closed, modes, use
from tests.engine.handmade_pods import requests, written_on_pods

from gpushare_core.text.json_object import Json


def handmade() -> Iterator[Json]:
    return chain(written_on_pods(), requests(), modes(), use(), closed(), histories())
