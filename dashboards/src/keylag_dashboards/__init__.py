"""Grafana dashboards, recording rules and alerts, generated from tables."""
