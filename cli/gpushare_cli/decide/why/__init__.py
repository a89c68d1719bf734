"""Why a pod waits, or why it runs where it runs, and what would help. Pure."""
