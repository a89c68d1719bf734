"""Thin access to the Kubernetes API for hot paths: plain JSON over one connection pool, no typed models."""
