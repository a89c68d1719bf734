"""The version of all programs."""

from importlib.metadata import version

VERSION = version("gpushare")
