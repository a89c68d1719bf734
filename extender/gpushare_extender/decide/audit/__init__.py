"""What the extender hands to the auditor, and the fast way to see that a node's records agree."""
