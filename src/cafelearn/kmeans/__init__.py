"""The solver of Minkowski weighted k-means: kernels, descents, initial centres, starts."""
