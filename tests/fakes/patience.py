"""How long a test waits for what promises no time."""

PATIENCE = 120.0
"""Seconds. Only a test that fails waits so long, however slow the machine is."""
