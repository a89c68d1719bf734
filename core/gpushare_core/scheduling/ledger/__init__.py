"""How many units of which card are free, over the whole cluster. Pure."""
