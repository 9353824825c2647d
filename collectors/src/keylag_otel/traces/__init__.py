"""Traces of single requests: spans and OSProfiler points from recorded events."""
