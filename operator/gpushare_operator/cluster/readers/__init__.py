"""From the API server's JSON to what the operator knows of an object: one module per kind."""
