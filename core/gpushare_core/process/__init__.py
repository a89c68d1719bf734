"""What every process needs: arguments, logs, metrics, deadlines, limits of memory."""
