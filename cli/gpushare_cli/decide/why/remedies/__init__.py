"""What would help a pod that waits, proven by the ledger, and what would not."""
