"""Changes objects as a person has asked for, and waits until that is in force."""
