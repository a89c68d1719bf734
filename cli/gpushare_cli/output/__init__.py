"""How a report reaches its reader: format, width, colour, progress, repetition."""
