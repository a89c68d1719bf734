"""The control-plane node: its files, and whether its scheduler serves."""
