"""Key pairs of extender and kube-scheduler, as hostctl leaves them on a control-plane node."""

import shutil
import ssl
from pathlib import Path

from gpushare_extender.transport.tls import TlsFiles

PAIRS = Path(__file__).resolve().parents[1] / "data" / "extender"
"""Two authorities, each with a server and a client; valid for a hundred years."""


def caller_tls(authority: str = "first", *, client: str = "first") -> ssl.SSLContext:
    """Trusts ``authority``; presents the certificate that the authority ``client`` gave, if one is named."""
    context = ssl.create_default_context(cafile=PAIRS / authority / "ca.pem")
    if client:
        context.load_cert_chain(PAIRS / client / "client.pem", PAIRS / client / "client.key")
    return context


class KeyFolder:
    """The extender's files, as hostctl leaves them on a control-plane node."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = TlsFiles(path / "server.pem", path / "server.key", path / "ca.pem")

    def write(self, authority: str, *names: str) -> None:
        """Puts the files of ``authority`` there, each in one step."""
        for name in names or ("server.pem", "server.key", "ca.pem"):
            shutil.copy(PAIRS / authority / name, self.path / "new")
            (self.path / "new").rename(self.path / name)
