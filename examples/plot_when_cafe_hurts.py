"""
When not to use CAFE
====================

Two cases: clusters without centres, such as stops along roads, and data without clusters.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score

from cafelearn import CAFE, RangeScaler
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.plotting import EmbeddingDisplay

warnings.simplefilter("ignore", DiagnosisWarning)  # the findings are printed below

# %%
# Clusters without a centre
# -------------------------
#
# A van stops along three roads: one around the town, one that winds through it, and one along
# the river. The stops on a road form a cluster, but they do not lie around a centre and are not
# compact on any coordinate. Neither centres nor weights can describe such a cluster.

rng = np.random.default_rng(0)
angle, place, river = (
    np.linspace(0, 2 * np.pi, 300),
    np.linspace(-4, 4, 150),
    np.linspace(-8, 8, 150),
)
stops = np.vstack(
    [
        np.column_stack([6 * np.cos(angle), 6 * np.sin(angle)]),
        np.column_stack([place, 2 * np.sin(place)]),
        np.column_stack([river, 0.05 * river**2 - 9]),
    ]
) + rng.normal(scale=0.15, size=(600, 2))
road = np.repeat([0, 1, 2], [300, 150, 150])

cafe = CAFE(3, random_state=0).fit(stops)
density = HDBSCAN(copy=True).fit_predict(stops)
found = {"CAFE": cafe.labels_, "HDBSCAN": density}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axis, (name, labels) in zip(axes, found.items(), strict=True):
    score = adjusted_rand_score(road, labels)
    print(f"{name:8s} agreement with the roads (ARI) {score:.2f}")
    EmbeddingDisplay(stops, labels).plot(axis, legend=False)
    axis.set(title=f"{name}, ARI {score:.2f}", xlabel="east", ylabel="north", aspect="equal")
plt.show()

# %%
# CAFE cannot detect that a method without centres would be better, but its diagnosis reports
# problems with its own clusters:

for finding in cafe.diagnosis_:
    print(f"{finding.severity}: {finding.message}")

# %%
# No clusters
# -----------
#
# The data is uniform noise in ten dimensions. With ``n_clusters=3`` CAFE finds three clusters,
# as any k-means method would. Centroid rescaling then separates these clusters in the extracted
# features, although the data has none.

X = np.random.default_rng(0).uniform(size=(300, 10))
centroid = CAFE(3, n_components=2, rescaling="centroid", weighting="cluster", random_state=0)
features = {
    "PCA": PCA(2).fit_transform(RangeScaler().fit_transform(X)),
    "CAFE, centroid rescaling": centroid.fit_transform(X),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axis, (name, values) in zip(axes, features.items(), strict=True):
    labels = KMeans(3, n_init=20, random_state=0).fit_predict(values)
    score = silhouette_score(values, labels)
    print(f"{name:26s} silhouette {score:.2f}")
    EmbeddingDisplay(values, labels).plot(axis, legend=False)
    axis.set_title(f"{name}\nsilhouette {score:.2f}")
plt.show()

# %%
# The diagnosis compares the clusters with a single cloud of rows. Its warning was silenced
# above.

for finding in centroid.diagnosis_:
    print(f"{finding.severity}: {finding.message}")

# %%
# **Result:** check the diagnosis before you use the features. Clearly separated groups in the
# features do not prove that there are clusters. If clusters have no centres, use a method
# without centres. :doc:`/guide/which_method` helps to choose a method, and
# :doc:`/guide/when_it_hurts` has more cases.
