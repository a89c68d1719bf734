"""The commands: their arguments, and what they run. A module each; the rows together in table.py."""
