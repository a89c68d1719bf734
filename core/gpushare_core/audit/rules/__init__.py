"""One rule of the auditor in each module: what two books must agree on. Pure."""
