"""Everything that is published of a version."""
