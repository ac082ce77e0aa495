"""
Choosing p
==========

What the exponent does to the weights, and how CAFE chooses it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt, load

data = load("iris")
X, _ = corrupt(RangeScaler().fit_transform(data.data), data.target, 0.2, 1.0, random_state=3)
exponents = (1.1, 1.3, 1.5, 2.0, 2.5, 3.0, 4.0)
cafe = CAFE(n_clusters=3, p=exponents, random_state=0).fit(X)

# %%
# Each exponent has its own clustering. The classes are not known in practice; what can be
# known is how much the clusterings agree with each other.

total = (cafe.agreement_.sum(axis=1) - 1) / (len(exponents) - 1)
truth = [adjusted_rand_score(data.target, model.labels_) for model in cafe.models_.values()]
for p, mean, score in zip(exponents, total, truth, strict=True):
    mark = "  <- chosen" if p == cafe.p_ else ""
    print(f"p = {p:3g}: mean agreement {mean:.2f}, ARI to the classes {score:.2f}{mark}")

# %%
# Left: agreement between every two exponents. Right: weights of the largest cluster, sorted.
# Small exponents put all weight on few features, large ones spread it.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
image = left.imshow(cafe.agreement_, vmin=0, vmax=1, cmap="cividis")
left.set_xticks(range(len(exponents)), [f"{p:g}" for p in exponents])
left.set_yticks(range(len(exponents)), [f"{p:g}" for p in exponents])
left.set(xlabel="p", ylabel="p", title="Agreement (ARI)")
figure.colorbar(image, ax=left)
shades = plt.get_cmap("cividis")(np.linspace(0, 0.9, len(exponents)))
for shade, (p, model) in zip(shades, cafe.models_.items(), strict=True):
    largest = np.bincount(model.labels_).argmax()
    weights = np.sort(model.feature_weights_[largest])[::-1]
    right.plot(np.arange(1, 5), weights, marker="o", color=shade, label=f"p = {p:g}")
right.set_xticks(range(1, 5))
right.set(xlabel="feature, by weight", ylabel="weight", title="Weights of the largest cluster")
right.legend()
plt.show()
