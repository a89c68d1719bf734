"""What becomes of the scheduler's files, and what its health probes add up to. Pure: no file, no socket."""
