"""The plugin of a node: it offers the node's cards to the kubelet in units of memory."""
