"""Finds the pod that a person means: by name, by what made it, or in a manifest."""

import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpushare_cli.commands.command import Session
from gpushare_cli.errors import CannotLookError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import PODS, pod_path, pods
from gpushare_core.kube.request import METADATA_LIST, ApiRequest
from gpushare_core.text.json_object import Json
