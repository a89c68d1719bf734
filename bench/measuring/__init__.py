"""How rows are run: how much of what, with which targets, and how it is told."""
