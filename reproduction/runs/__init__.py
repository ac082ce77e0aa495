"""Run experiments in processes or on a cluster, and store their records."""
