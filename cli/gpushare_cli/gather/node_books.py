"""What of the kubelet's books needs the product's whole distribution: the client alone has no gRPC."""

from pathlib import Path

from gpushare_cli.errors import CannotLookError
from gpushare_core.audit.records import HostRecords

NOT_INSTALLED = (
    "a kubelet's records are read with {missing}, which the client alone does not bring: run this on the node"
    " from gpushare's image, or install the distribution gpushare there, beside kubectl-gpushare"
)


def read_node_books(kubelet: Path) -> HostRecords:
    """Reads the books of the kubelet with the folder ``kubelet``.

    Raises:
        CannotLookError: they cannot be read, or only the client is installed here.
    """
    try:
        from gpushare_cli.gather.host import read_host
    except ModuleNotFoundError as error:
        raise CannotLookError(NOT_INSTALLED.format(missing=error.name)) from error
    return read_host(kubelet)
