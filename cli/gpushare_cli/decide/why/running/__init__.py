"""Of a pod that has a node: where it is, on which cards, beside whom, and why there."""
