"""Reads the API server, the extender, a node's kubelet and its files, and decides nothing. What cannot be
read raises ``CannotLookError``."""
