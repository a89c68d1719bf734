"""Which cluster a person means, as whom, and in which namespace."""
