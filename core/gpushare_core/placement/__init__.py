"""Which card and which node a request gets, and what a pod asks for."""
