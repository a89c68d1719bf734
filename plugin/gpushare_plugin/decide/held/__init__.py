"""Which pod holds which units."""
