"""The solver of one clustering; takes arrays, not estimators."""
