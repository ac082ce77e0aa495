"""
Choosing the exponent
=====================

Show the effect of the exponent p on the weights, and choose p without known classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, PAPER, RangeScaler
from cafelearn.datasets import corrupt, load
from cafelearn.plotting import AgreementDisplay

# %%
# Add noise to Iris and cluster it with seven exponents. The other settings are the paper's,
# with fewer starts.

data = load("iris")
X, _ = corrupt(RangeScaler().fit_transform(data.data), data.target, 0.2, 1.0, random_state=3)
exponents = (1.1, 1.3, 1.5, 2.0, 2.5, 3.0, 4.0)
settings = PAPER | {"p": exponents, "n_init": 20}
cafe = CAFE(n_clusters=3, random_state=0, **settings).fit(X)

# %%
# Most of the exponents give different clusterings. In practice the classes are unknown, but the
# agreement between two clusterings can be measured by their adjusted Rand index (ARI).
# ``selection="agreement"``, the paper's rule, chooses the clustering with the largest sum of
# agreements with the others.

_ = AgreementDisplay.from_estimator(cafe)

# %%
# In this example the classes are known, so the choice can be checked: ``ari`` is the agreement
# of each clustering with the classes.

table = cafe.candidates_[["p", "score", "chosen"]]
print(
    table.assign(ari=[adjusted_rand_score(data.target, m.labels_) for m in cafe.models_])
    .round(2)
    .to_string(index=False)
)

# %%
# ``selection="likelihood"``, the default, chooses the clustering with the highest ``score``.
# The candidates are the same, so only the choice can differ.

by_score = CAFE(3, random_state=0, **settings | {"selection": "likelihood"}).fit(X)
print(f"by agreement: p = {cafe.p_:g}, by likelihood: p = {by_score.p_:g}")

# %%
# Small exponents give nearly all the weight of a cluster to a few features. Large exponents
# give similar weights to all features.

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
shades = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(exponents)))
for shade, model in zip(shades, cafe.models_, strict=True):
    largest = np.bincount(model.labels_).argmax()
    weights = np.sort(model.feature_weights_[largest])[::-1]
    axes.plot(np.arange(1, 5), weights, marker="o", color=shade, label=f"p = {model.p:g}")
axes.set_xticks(range(1, 5))
axes.set(xlabel="feature, by weight", ylabel="weight", title="Weights of the largest cluster")
axes.legend()
plt.show()
