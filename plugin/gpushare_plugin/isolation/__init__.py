"""What isolation needs on the node: the files that containers are given, and what the driver says."""
