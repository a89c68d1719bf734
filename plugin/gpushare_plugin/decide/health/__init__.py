"""Which cards take new pods."""
