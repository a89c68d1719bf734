"""The extender's own audit: looks at the books now and then, and publishes where they differ."""
