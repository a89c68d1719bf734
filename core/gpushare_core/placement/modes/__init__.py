"""The sharing modes, one module each; the rows together in table.py."""
