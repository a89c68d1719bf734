"""Taking cards out: which are meant, who is on them, which of these pods can be moved. Pure."""
