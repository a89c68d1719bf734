"""What keeps a pod from running: a family of causes a module; the rows together in table.py."""
