"""Which policy has a node, and the labels and taints that the node shows."""
