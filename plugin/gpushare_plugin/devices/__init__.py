"""Where the node's cards come from: one module for each source of devices."""
