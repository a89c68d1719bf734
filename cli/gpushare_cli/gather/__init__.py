"""Who reads the books: the API server, the extender, a node's kubelet. Nothing is decided here."""
