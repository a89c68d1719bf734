"""The one version of the distribution."""

from importlib.metadata import version

VERSION = version("gpushare")
