"""Where kube-scheduler answers health checks, as its flags say."""

from dataclasses import dataclass

from gpushare_hostctl.decide.scheduler import scheduler_config
from gpushare_hostctl.decide.scheduler.manifest import SchedulerPod
from gpushare_hostctl.errors import NeedsPersonError

_DEFAULT_PORT = "10259"
_ANY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


@dataclass(frozen=True)
class HealthEndpoint:
    """kube-scheduler's HTTPS address on the host."""

    host: str
    port: int
    path: str
    """Of the health check that says that it works."""
    lasting_certificate: bool
    """The certificate comes from files, so that a new process shows the same one."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}{self.path}"


def find(scheduler: SchedulerPod, *, config: bytes | None) -> HealthEndpoint | None:
    """Returns the endpoint, None when HTTPS is switched off.

    ``config``: content of kube-scheduler's configuration file. Raises NeedsPersonError for flags that cannot
    be read.
    """
    flags = scheduler.flags
    port = _port(flags.value("secure-port") or _DEFAULT_PORT)
    address = flags.value("bind-address") or ""
    lasting = bool(flags.value("tls-cert-file") or flags.value("cert-dir"))
    # Ready means more than alive: the scheduler has read the cluster. It says so only when it leads where
    # the caches are filled late.
    path = "/livez" if config and scheduler_config.delays_cache_until_active(config) else "/readyz"
    host = _ANY_ADDRESS.get(address, address)
    return HealthEndpoint(host=host, port=port, path=path, lasting_certificate=lasting) if port else None


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise NeedsPersonError(f"the flag --secure-port={text} of kube-scheduler is not a port; correct it")
    return port
