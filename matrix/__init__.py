"""On which versions of Kubernetes the end-to-end tests and the scheduler's Go tests pass: ``make matrix``.

``run`` has one minor built and its tests run; ``recording`` is the plugin by which pytest writes what came of
each, ``results`` reads that; ``report`` is what is kept in docs/versions.json, a row for each minor;
``documents`` writes docs/versions.md, and what the README and docs/install.md claim, from it.
"""
