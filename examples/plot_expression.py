"""
Expression data: more genes than samples
========================================

Find four subtypes in 120 samples of 2,000 genes, and the genes that characterise each subtype.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from cafelearn import CAFE

# %%
# The values are generated; they represent logarithms of expression levels. Each subtype has 40
# marker genes. In samples of the subtype, their expression is raised and varies little; in all
# other samples they vary like any other gene. There are 17 times as many genes as samples, and
# 92% of the genes are unrelated to the subtypes.

rng = np.random.default_rng(4)
n_samples, n_genes, n_markers = 120, 2000, 40
subtype = rng.permutation(np.repeat(np.arange(4), n_samples // 4))
genes = np.array([f"gene {number}" for number in range(n_genes)])
markers = rng.choice(n_genes, (4, n_markers), replace=False)
X = rng.normal(size=(n_samples, n_genes))
for kind in range(4):
    rows = np.flatnonzero(subtype == kind)
    X[np.ix_(rows, markers[kind])] = rng.normal(2, 0.5, (len(rows), n_markers))
table = pd.DataFrame(X, columns=genes)

# %%
# The subtypes are so clear that k-means finds them too, but k-means does not show which genes
# characterise a cluster. By default, CAFE also tries equal weights and may choose them;
# ``weighting="cluster"`` excludes them. The number of genes is not limited, but by default CAFE
# extracts at most as many features as there are samples.

cafe = CAFE(4, weighting="cluster", random_state=0).fit(table)
plain = KMeans(4, n_init=20, random_state=0).fit_predict(StandardScaler().fit_transform(X))
for name, labels in {"k-means": plain, "CAFE": cafe.labels_}.items():
    score = adjusted_rand_score(subtype, labels)
    print(f"{name:8s} agreement with the subtypes (ARI) {score:.2f}")
print(f"features extracted: {cafe.transform(table).shape[1]}")

# %%
# Select the 40 genes with the highest weights in each cluster. How many of them are markers of
# the subtype?

weights = cafe.weights_frame()
subtype_of = pd.crosstab(cafe.labels_, subtype).idxmax(axis=1)
chosen = [weights.iloc[cluster].nlargest(n_markers).index for cluster in range(4)]
for cluster, top in enumerate(chosen):
    right = np.isin(top, genes[markers[subtype_of[cluster]]]).sum()
    print(f"cluster {cluster}: {right} of the {n_markers} top genes are markers")

# %%
# Draw the expression of the ten genes with the highest weights in each cluster, with the
# samples sorted by cluster. Dark red blocks on the diagonal are genes that are raised in one
# cluster only.

order = np.argsort(cafe.labels_, kind="stable")
shown = [gene for top in chosen for gene in top[:10]]
figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
image = axes.imshow(
    table[shown].to_numpy()[order].T, cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto"
)
edges = np.cumsum(np.bincount(cafe.labels_))
for edge in edges[:-1]:
    axes.axvline(edge - 0.5, color="black", lw=1)
for edge in (10, 20, 30):
    axes.axhline(edge - 0.5, color="black", lw=1)
middle = edges - np.bincount(cafe.labels_) / 2
axes.set_xticks(middle, [f"cluster {cluster}" for cluster in range(4)])
axes.set_yticks(np.arange(4) * 10 + 4.5, [f"top genes of\ncluster {l}" for l in range(4)])
figure.colorbar(image, label="logarithm of the expression")
plt.show()

# %%
# **Result:** with many more genes than samples, CAFE finds the same subtypes as k-means. It
# also finds the genes that characterise each subtype: nearly all genes with the highest weights
# are true markers.
