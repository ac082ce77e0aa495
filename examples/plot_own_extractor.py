"""
Your own extractor
==================

Any scikit-learn transformer can extract the features. The extractor of this example selects
columns instead of combining them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted, validate_data

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt

# %%
# The paper's rescaling multiplies each row by the weights of its cluster. This shrinks a column
# in the clusters where it is noise. A column that still has a large variance afterwards has
# high weights or differs between clusters, so the extractor keeps the columns with the largest
# variance.


class WidestFeatures(TransformerMixin, BaseEstimator):
    """Select the features with the largest variance."""

    def __init__(self, n_components=2):
        self.n_components = n_components

    def fit(self, X, y=None):
        X = validate_data(self, X)
        order = np.argsort(-X.var(axis=0), kind="stable")
        self.chosen_ = np.sort(order[: self.n_components])
        return self

    def transform(self, X):
        check_is_fitted(self)
        return validate_data(self, X, reset=False)[:, self.chosen_]


# %%
# Compare the selection with CAFE and without CAFE on noisy data.

data = load_wine()
names = np.array(data.feature_names)
clean = RangeScaler().fit_transform(data.data)
X, _ = corrupt(clean, data.target, noise_level=0.4, noise_scale=1.0, random_state=0)
scaled = RangeScaler().fit_transform(X)

plain = WidestFeatures(4).fit(scaled)
# "origin" is the paper's rescaling; the default would let the extractor select distances.
cafe = CAFE(3, n_components=4, extractor=WidestFeatures(), rescaling="origin", random_state=0)
cafe.fit(X)
for name, features, chosen in (
    ("without CAFE", plain.transform(scaled), plain.chosen_),
    ("with CAFE", cafe.transform(X), cafe.extractor_.chosen_),
):
    labels = KMeans(3, n_init=20, random_state=0).fit_predict(features)
    score = adjusted_rand_score(data.target, labels)
    print(f"{name:12s} ARI {score:.2f}: {', '.join(names[chosen])}")

# %%
# Plot the variance of each column before and after the rescaling, as a share of the sum over
# all columns.

before = scaled.var(axis=0)
after = cafe.rescale(X).var(axis=0)
place = np.arange(len(names))
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.bar(place - 0.2, before / before.sum(), 0.4, color="#E69F00", label="scaled")
axes.bar(place + 0.2, after / after.sum(), 0.4, color="#0072B2", label="rescaled by CAFE")
axes.set_xticks(place, names, rotation=35, ha="right", rotation_mode="anchor")
axes.set_ylabel("share of the variance")
axes.legend()
plt.show()
