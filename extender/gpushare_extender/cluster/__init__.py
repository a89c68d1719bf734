"""What the extender watches in the cluster, reads there now and then, and writes for others to see."""
