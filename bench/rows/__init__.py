"""The rows of the table of targets: each measures, and ``bench.measuring.figures`` judges."""
