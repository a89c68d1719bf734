"""What users write and read: the API's models, its names, and what of it this version serves."""
