"""
Choosing the exponent
=====================

What the exponent does to the weights, and how CAFE chooses it without knowing the classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt, load
from cafelearn.plotting import AgreementDisplay

data = load("iris")
X, _ = corrupt(RangeScaler().fit_transform(data.data), data.target, 0.2, 1.0, random_state=3)
exponents = (1.1, 1.3, 1.5, 2.0, 2.5, 3.0, 4.0)
cafe = CAFE(n_clusters=3, p=exponents, n_init=20, random_state=0).fit(X)

# %%
# Each exponent has its own clustering. The classes are not known in practice; what can be
# known is how much the clusterings agree with each other. The one with the largest sum wins.

_ = AgreementDisplay.from_estimator(cafe)

# %%
# Was the choice a good one? Here the classes are known.

for p, model in cafe.models_.items():
    score = adjusted_rand_score(data.target, model.labels_)
    print(f"p = {p:3g}: ARI to the classes {score:.2f}{'  <- chosen' if p == cafe.p_ else ''}")

# %%
# Small exponents put all weight of a cluster on few features, large ones spread it.

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
shades = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(exponents)))
for shade, (p, model) in zip(shades, cafe.models_.items(), strict=True):
    largest = np.bincount(model.labels_).argmax()
    weights = np.sort(model.feature_weights_[largest])[::-1]
    axes.plot(np.arange(1, 5), weights, marker="o", color=shade, label=f"p = {p:g}")
axes.set_xticks(range(1, 5))
axes.set(xlabel="feature, by weight", ylabel="weight", title="Weights of the largest cluster")
axes.legend()
plt.show()
