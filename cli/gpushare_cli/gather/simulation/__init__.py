"""Reads what a simulation begins with, and has the API server check a policy without storing it."""
