"""The estimators, and how CAFE fits its candidates."""
