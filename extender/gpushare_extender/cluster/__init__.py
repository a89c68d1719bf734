"""What the extender follows in the cluster."""
