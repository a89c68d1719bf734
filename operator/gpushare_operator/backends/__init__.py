"""One folder for each way to have a scheduler place pods by cards; ``table`` lists them. Pure."""
