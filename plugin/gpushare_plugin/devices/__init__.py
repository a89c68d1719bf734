"""Where the node's cards come from."""
