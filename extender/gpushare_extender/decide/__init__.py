"""What a pod requests, which nodes it fits, and which of them are better. Pure."""
