"""What to offer, which units to give to whom, what to repair and what to report. Pure."""
