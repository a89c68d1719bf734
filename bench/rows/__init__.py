"""The rows of the table of targets: each measures, and leaves the judgement to ``bench.figures``."""
