"""The objects of each node side by side, and sums over all nodes."""
