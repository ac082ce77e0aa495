"""The door: checks, gaps, variables and scaling of rows."""
