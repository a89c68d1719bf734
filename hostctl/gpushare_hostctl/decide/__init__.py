"""What becomes of the scheduler's files. Pure: bytes in, bytes out."""
