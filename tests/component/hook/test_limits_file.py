"""Where a container has no limits that can be read, the hook does nothing: never an exit, never a word."""

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.component.hook.share import FIRST, SECOND, SHARE
from tests.fakes.cuda_container import IDENTITY
from tests.fakes.cuda_driver import GIB, CudaDriver

GOOD = f"container {IDENTITY}\ncontext 629145600\n{FIRST} {SHARE}\n"
UNREADABLE = {
    "empty": "",
    "no card's line ends": GOOD.rstrip("\n"),
    "no identity": GOOD.replace(f"container {IDENTITY}\n", ""),
    "short identity": GOOD.replace(IDENTITY, IDENTITY[:-1]),
    "identity with a slash": GOOD.replace(IDENTITY, "../" + IDENTITY[3:]),
    "capitals": GOOD.replace(IDENTITY, IDENTITY.upper()),
    "no context": GOOD.replace("context 629145600\n", ""),
    "other order": f"context 629145600\ncontainer {IDENTITY}\n{FIRST} {SHARE}\n",
    "no number": GOOD.replace(str(SHARE), "4Gi"),
    "negative": GOOD.replace(str(SHARE), "-1"),
    "too big": GOOD.replace(str(SHARE), "9" * 30),
    "words after it": GOOD.replace(str(SHARE), f"{SHARE} bytes"),
    "empty line": GOOD + "\n",
    "NUL": GOOD + "\0",
    "carriage returns": GOOD.replace("\n", "\r\n"),
    "endless": GOOD + "x" * 2**20,
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_limits_nothing(content: str, make_container: MakeContainer) -> None:
    container = make_container(own_limits=content)
    user = container.user().open()
    user.allocate(2 * SHARE)
    assert user.info()[1] == 16 * GIB
    assert user.end() == ""
    assert not container.ledger.exists()


def test_a_missing_file_limits_nothing(make_container: MakeContainer) -> None:
    container = make_container()
    (container.folder / "etc/gpushare/limits").unlink()
    user = container.user().open()
    user.allocate(2 * SHARE)
    assert user.end() == ""


def test_uuids_of_other_vendors_are_no_error(make_container: MakeContainer) -> None:
    strange = "x" * 64
    user = make_container(limits={strange: GIB, FIRST: SHARE, SECOND: GIB}).user().open()
    assert user.info()[1] == SHARE
    assert user.refused(SHARE)


def test_a_card_in_capitals_is_the_same_card(make_container: MakeContainer) -> None:
    user = make_container(limits={FIRST.replace("a", "A"): SHARE}).user().open()
    assert user.info()[1] == SHARE


def test_a_share_bigger_than_the_card_is_the_whole_card(make_container: MakeContainer) -> None:
    user = make_container(limits={FIRST: 64 * GIB}).user().open()
    assert user.info()[1] <= 64 * GIB
    assert user.refused(16 * GIB)
    user.allocate(8 * GIB)


def test_a_container_without_a_driver_runs_as_ever(make_container: MakeContainer, driver: CudaDriver) -> None:
    driver.library.unlink()
    container = make_container()
    user = container.user()
    assert user.ask("echo still here") == "still here"
    assert user.call("cuInit", 0).code == 9999, "not found"
    assert user.end() == ""
