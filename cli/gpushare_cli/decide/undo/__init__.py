"""What deleting policies does: its steps, what stays, and what of it is left afterwards."""
