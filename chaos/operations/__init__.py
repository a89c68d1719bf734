"""The kinds of operations: a module for each family, with its rows in ``KINDS``."""
