"""Columns of tables: kinds, treatment, encoding."""
