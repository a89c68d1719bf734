"""What is published of a version."""
