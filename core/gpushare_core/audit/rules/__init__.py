"""What must hold between the books, one rule of the auditor in each module. Pure."""
