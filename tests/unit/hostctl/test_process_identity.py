"""Reading the kernel's table of sockets."""

import pytest

from gpushare_hostctl.decide.run.process_identity import listening_sockets

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def line(address: str, inode: int, *, state: str = "0A") -> str:
    queues = "00000000:00000000 00:00000000 00000000"
    return f"   0: {address} 00000000:0000 {state} {queues}     0        0 {inode} 1\n"


V4 = HEAD + line("0100007F:2813", 11) + line("00000000:0016", 12) + line("0100007F:2813", 13, state="01")
V6 = (
    HEAD
    + line("00000000000000000000000000000000:2814", 21)
    + line("00000000000000000000000001000000:2813", 22)
)


@pytest.mark.parametrize(
    ("host", "port", "inodes"),
    [
        pytest.param("127.0.0.1", 10259, (11,), id="the loopback address"),
        pytest.param("127.0.0.1", 22, (12,), id="listening on every address"),
        pytest.param("127.0.0.1", 10260, (21,), id="listening on every address of both families"),
        pytest.param("::1", 10259, (22,), id="IPv6"),
        pytest.param("127.0.0.1", 1, (), id="nobody"),
        pytest.param("10.0.0.1", 10259, (), id="another address"),
        pytest.param("localhost", 10259, None, id="a name"),
    ],
)
def test_the_sockets_at_an_address(host: str, port: int, inodes: tuple[int, ...] | None) -> None:
    assert listening_sockets([V4, V6], host=host, port=port) == inodes


def test_an_address_of_its_own_goes_before_every_address() -> None:
    table = HEAD + line("00000000:2813", 1) + line("0100007F:2813", 2)

    assert listening_sockets([table], host="127.0.0.1", port=10259) == (2,)


def test_an_ipv4_address_listened_to_by_ipv6_is_found() -> None:
    table = HEAD + line("0000000000000000FFFF00000100007F:2813", 5)

    assert listening_sockets(["", table], host="127.0.0.1", port=10259) == (5,)


@pytest.mark.parametrize("table", ["", "\n", HEAD, HEAD + "  1: short\n"])
def test_a_table_without_sockets_has_none(table: str) -> None:
    assert listening_sockets([table], host="127.0.0.1", port=10259) == ()
