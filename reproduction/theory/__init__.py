"""The study behind the paper's Figures 1 and 2."""
