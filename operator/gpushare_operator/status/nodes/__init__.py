"""What a status says of the nodes of a policy: node by node, then of all together."""
