"""What is to be done. Pure: a snapshot in, a plan out."""
