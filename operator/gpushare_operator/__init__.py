"""The operator: it puts policies into force and takes them back."""
