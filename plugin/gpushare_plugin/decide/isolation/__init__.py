"""What keeps a container to the memory of its units: what a kind needs, gives, and whether it is in force."""
