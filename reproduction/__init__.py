"""Repeat the paper's experiment, and compare CAFE with other methods."""
