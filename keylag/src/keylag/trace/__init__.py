"""One call, followed: read a trace from where it is kept, and say what it shows."""
