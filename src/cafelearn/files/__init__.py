"""Files: atomic writes, arrays, models and their checks."""
