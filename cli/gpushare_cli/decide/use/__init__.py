"""How much memory of cards is really used, beside what was asked for."""
