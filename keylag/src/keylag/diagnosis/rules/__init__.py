"""The rules: one file for each cause."""
