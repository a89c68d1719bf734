"""The words and the exit status of reports. Pure."""
