"""Which version the client has, and which versions run in the cluster."""

from typing import ClassVar

from gpushare_cli.report import CommandReport


class VersionReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "VersionReport"
    client: str
    server: str
    """Of Kubernetes, as the API server says it: such as ``v1.36.3``."""
