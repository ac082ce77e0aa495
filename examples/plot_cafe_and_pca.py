"""
CAFE and PCA on noisy data
==========================

Extract two features from noisy data. Noise dominates the features of PCA; the features of CAFE
separate the classes.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt
from cafelearn.plotting import EmbeddingDisplay

# %%
# Wine has three classes and 13 features. The features are scaled to a range of 1. Gaussian
# noise of standard deviation 1 is then added to 12 of the 39 pairs of a class and a feature.
# The jitter makes all values unique; without it, the values without noise could be told by
# their being repeated.

wine = load_wine()
clean = RangeScaler().fit_transform(wine.data)
X, _ = corrupt(clean, wine.target, 0.3, 1.0, random_state=0, jitter=0.02)

# %%
# Extract two features in three ways. By default, CAFE extracts them from the rows, their
# membership probabilities and their log densities in the clusters. Centroid rescaling instead
# shrinks each row towards the centre of its cluster.

centroid = CAFE(3, n_components=2, rescaling="centroid", random_state=0)
features = {
    "PCA": PCA(2).fit_transform(RangeScaler().fit_transform(X)),
    "CAFE": CAFE(3, n_components=2, random_state=0).fit_transform(X),
    "CAFE, centroid rescaling": centroid.fit_transform(X),
}

# %%
# How well does k-means find the classes in these features? The adjusted Rand index (ARI) of
# its clusters and the classes is 1 if they agree perfectly and about 0 if they agree only by
# chance. Colours show the true classes.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
for axis, (name, values) in zip(axes, features.items(), strict=True):
    labels = KMeans(3, n_init=50, random_state=0).fit_predict(values)
    score = adjusted_rand_score(wine.target, labels)
    print(f"{name:26s} ARI {score:.2f}")
    display = EmbeddingDisplay(values, wine.target).plot(axis, legend=False)
    axis.set_title(f"{name}\nARI {score:.2f}")
axes[0].legend(display.scatters_[0], [name.replace("_", " ") for name in wine.target_names])
plt.show()

# %%
# Centroid rescaling emphasises the clusters that CAFE has found, whether or not they are real.
# :doc:`plot_when_cafe_hurts` shows its effect on data without clusters.
