"""Where the node's cards come from: one folder for each source of devices."""
