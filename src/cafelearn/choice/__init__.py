"""The choice of a clustering: criterion, number of clusters, verdict and stability."""
