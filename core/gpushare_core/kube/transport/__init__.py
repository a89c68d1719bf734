"""How a request reaches the API server: directly by our own HTTP/1.1, or by a proxy with aiohttp."""
