"""Reads the API server, the extender, a node's kubelet and its files. Nothing is decided here."""
