"""The trace of one call: read from its storage, analysed and displayed."""
