"""Which container uses how much of which card."""
