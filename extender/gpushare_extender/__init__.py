"""extender"""

PROGRAM = "gpushare-extender"
