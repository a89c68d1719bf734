"""Which nodes fit a request, which of them are offered, which are better."""
