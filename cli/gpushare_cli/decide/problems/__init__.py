"""What is wrong with an installation, and what to do about it: one family of problems a module, all in
table.py."""
