"""The version of all programs, and of both distributions: their ``pyproject.toml`` read it here."""

VERSION = "0.1.0"
