"""Which nodes take a pod, and which are better. Pure."""
