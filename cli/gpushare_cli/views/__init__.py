"""What people see of a report: tables, bars and sentences. Pure."""
