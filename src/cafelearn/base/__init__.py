"""Small helpers that know nothing of clusters."""
