"""Why units cannot be given to a container."""


class UnusableUnitsError(ValueError):
    """No container can be given these units; the text says why."""
