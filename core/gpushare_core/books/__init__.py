"""The durable form of an allocation."""
