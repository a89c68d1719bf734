"""Adds core, which is in another folder of the checkout, to what is built of the client.

An editable installation takes it from that folder (``dev-mode-dirs``): a copy would go out of date.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "gpushare_core"


class CoreBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            beside = Path(self.root, NAME)  # in an archive of sources
            source = beside if beside.exists() else Path(self.root).parent / "core" / NAME
            build_data["force_include"][str(source)] = NAME
