"""Which unit ID lies on which card."""
