"""What the extender watches in the cluster."""
