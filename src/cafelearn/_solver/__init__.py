"""How one clustering is computed. Knows arrays, not estimators."""
