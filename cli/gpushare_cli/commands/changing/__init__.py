"""The commands that change something: what they show first, ask, and wait for."""
