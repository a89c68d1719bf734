"""The operator as a process: login, leadership, health, metrics, uninstallation."""
