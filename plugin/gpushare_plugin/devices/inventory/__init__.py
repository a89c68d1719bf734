"""Cards from a file that an administrator writes."""
