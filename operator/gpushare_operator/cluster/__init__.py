"""What the operator knows of the cluster: watched objects, cached, read as snapshots."""
