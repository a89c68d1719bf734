"""Programs as processes of their own, and what they talk to when there is no cluster."""
