"""What tells one process of kube-scheduler from the next, without the API and without the process table.

A process makes its listening socket once, when it starts, and the kernel gives every socket an inode of its
own, which the host's ``/proc/net/tcp`` shows to everyone. Where that cannot be read there is the certificate:
without ``--tls-cert-file`` and ``--cert-dir`` kube-scheduler makes one in memory when it starts.
"""

import ipaddress
import struct
from collections.abc import Iterable
from dataclasses import dataclass

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LISTEN = "0A"
"""State of a listening socket in ``/proc/net/tcp``."""


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of kube-scheduler, as far as it was seen."""

    sockets: tuple[int, ...] | None = None
    """Inodes of the sockets that listen at its port: empty when nobody listens, None when that is unknown."""
    certificate: str | None = None
    """SHA-256 in hex; None when there was no handshake."""

    def is_followed_by(self, now: "ProcessIdentity", *, lasting_certificate: bool) -> bool | None:
        """Returns whether ``now`` is another process; None when that is unknown.

        ``lasting_certificate``: the certificate comes from files. A new process shows the same one, and the
        same process shows a new one once the files change.
        """
        if self.sockets and now.sockets:
            return set(self.sockets).isdisjoint(now.sockets)
        if lasting_certificate or not self.certificate or not now.certificate:
            return None
        return self.certificate != now.certificate


UNKNOWN = ProcessIdentity()


def listening_sockets(tables: Iterable[str], *, host: str, port: int) -> tuple[int, ...] | None:
    """Returns the inodes, in order, of the sockets that a connection to ``host`` and ``port`` can reach.

    ``tables``: contents of ``/proc/net/tcp`` and ``/proc/net/tcp6``. None when ``host`` is no address.
    """
    try:
        wanted = ipaddress.ip_address(host)
    except ValueError:
        return None
    lines = (line.split() for table in tables for line in table.splitlines()[1:])
    listening = [socket for fields in lines if _listens(fields, port=port) and (socket := _socket(fields))]
    exact = [inode for address, inode in listening if address == wanted]
    return tuple(sorted(exact or (inode for address, inode in listening if address.is_unspecified)))


def _listens(fields: list[str], *, port: int) -> bool:
    return len(fields) > 9 and fields[3] == _LISTEN and fields[1].endswith(f":{port:04X}")


def _socket(fields: list[str]) -> tuple[IPAddress, int] | None:
    """Returns address and inode of a line; None for a line that the kernel would not write."""
    try:
        return _address(fields[1]), int(fields[9])
    except (ValueError, struct.error):
        return None


def _address(text: str) -> IPAddress:
    """The kernel prints addresses as 32-bit words in the byte order of the machine."""
    digits = text.partition(":")[0]
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    address = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    return getattr(address, "ipv4_mapped", None) or address
