"""What a fit means: profiles, explanations, names, notebook cards."""
