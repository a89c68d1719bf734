"""What the demo plays: one module for each mode of sharing."""
