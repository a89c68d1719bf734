"""A simple model of what must be true when all is quiet; no program of ours is asked."""
