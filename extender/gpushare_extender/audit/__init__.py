"""The extender's own audit: compares the records of nodes that changed, and publishes differences."""
