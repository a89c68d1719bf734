"""How the systems of GPU sharing name things: one row of a table, and one codec, for each."""
