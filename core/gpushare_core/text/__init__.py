"""Text that others wrote: JSON, YAML, whole numbers, and what of it may be printed."""
