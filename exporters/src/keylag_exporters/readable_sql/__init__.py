"""Readable forms of statements, for people: tables, joins, predicates, no values."""
