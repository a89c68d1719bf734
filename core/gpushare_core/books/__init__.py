"""The durable form of an allocation, and how each dialect names things."""
