"""
CAFE and PCA on noisy data
==========================

Two components of the same noisy data: PCA follows the noise, CAFE the classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt

wine = load_wine()
X, _ = corrupt(RangeScaler().fit_transform(wine.data), wine.target, 0.3, 1.0, random_state=0)

# %%
# Three ways to two features. The rescaling of the paper multiplies each row by its
# cluster's weights; the centroid variant shrinks it towards its cluster's centre.

features = {
    "PCA": PCA(2).fit_transform(RangeScaler().fit_transform(X)),
    "CAFE": CAFE(3, n_components=2, random_state=0).fit_transform(X),
    "CAFE, centroid rescaling": CAFE(
        3, n_components=2, rescaling="centroid", random_state=0
    ).fit_transform(X),
}

# %%
# How well does k-means find the classes in them?

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for axis, (name, Y) in zip(axes, features.items(), strict=True):
    labels = KMeans(3, n_init=50, random_state=0).fit_predict(Y)
    score = adjusted_rand_score(wine.target, labels)
    print(f"{name:26s} ARI {score:.2f}")
    for label, (color, marker) in enumerate(
        [("#0072B2", "o"), ("#E69F00", "s"), ("#009E73", "^")]
    ):
        rows = wine.target == label
        axis.scatter(*Y[rows].T, s=18, c=color, marker=marker, label=wine.target_names[label])
    axis.set_title(f"{name}: ARI {score:.2f}")
    axis.set_xlabel("component 1")
axes[0].set_ylabel("component 2")
axes[0].legend()
assert all(np.isfinite(Y).all() for Y in features.values())
plt.show()
