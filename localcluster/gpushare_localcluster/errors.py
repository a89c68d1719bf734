"""Errors whose messages are for the person at the terminal."""


class LocalClusterError(Exception):
    """Says in one sentence what is wrong and what to do about it."""


class NotRunningError(LocalClusterError):
    """There is no running cluster where one was expected."""
