"""What people see of the versions."""

from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.decide.version import VersionReport
from gpushare_cli.output.page import OutputPage


def version_view(report: VersionReport, _page: OutputPage) -> Iterable[RenderableType]:
    yield f"Client: {report.client}"
    yield f"Kubernetes: {report.server}"
