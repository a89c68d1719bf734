"""Breaks everything on purpose on a real local cluster, and audits the books all along.

How it fits together:

- ``operation.py``: what an operation is, a fault, and a row of the table of kinds.
- ``operations/``: the kinds, a module for each family with its rows in ``KINDS``; ``table.py`` has all rows.
- ``plan/``: draws the whole history up front from a seed, pure: it knows what it has ordered itself and never
  what the cluster answered. So a history is data (JSON lines), and every prefix of it can be replayed.
- ``world.py``: the cluster, the product on it, and clients; what operations work on.
- ``runner.py``: rounds. Faults and pod operations side by side, then faults end, quiet, all books agree.
- ``audit/``: reads the books while all this happens, and at every quiet.

To add a kind: a frozen subclass of ``Operation`` or ``Fault`` with its ``tag``, and a row ``Kind`` in the
``KINDS`` of its module, which ``operations/table.py`` lists.
"""
