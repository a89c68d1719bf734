"""What is found, and how that is judged: a folder, or a module, for each question. Pure."""
