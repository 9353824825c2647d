"""Generates Grafana dashboards, recording rules and alerts from Python tables."""
