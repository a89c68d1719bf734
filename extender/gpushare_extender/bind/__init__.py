"""Binding pods to nodes and cards."""
