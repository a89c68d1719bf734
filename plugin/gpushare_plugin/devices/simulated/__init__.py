"""Cards that do not exist, for demos and tests."""
