"""What the command line keeps of each kind of object: lenient, so that a newer cluster can be read."""
