"""A proxy between our programs and the API server that breaks what passes through it, on command.

``call.py`` says who asks for what and ``fault.py`` what becomes of it (both pure), ``server.py`` and
``streams.py`` do it, ``process.py`` runs it in the network of a local cluster and gives it commands.
"""
