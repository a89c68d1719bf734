"""Adds core, which is in another folder of the checkout, to the client's wheel.

An editable installation takes it from that folder (``dev-mode-dirs``): a copy would go out of date.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CORE = {"../core/gpushare_core": "gpushare_core"}


class CoreBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"].update(CORE)
