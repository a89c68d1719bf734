"""Where pods would land, and what a changed policy, another unit or a node less would do. Pure."""
