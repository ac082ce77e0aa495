"""The paper's experiment, and its results beside the published ones."""
