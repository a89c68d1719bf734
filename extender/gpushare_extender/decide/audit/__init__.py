"""What the extender hands to the auditor, and the fast way to see that the books of a node agree."""
