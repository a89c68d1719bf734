"""What people are told. Pure."""
