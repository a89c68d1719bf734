"""The objects that the operator wants to exist. Pure."""
