"""Rows without a cluster: programs as processes beside stand-ins."""
