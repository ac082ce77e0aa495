"""
Where the noise is
==================

The weights of a fit beside the (class, feature) pairs that noise was added to.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt, load

# %%
# Breast Cancer, with noise in 40% of the pairs of a class and a feature.

data = load("breast_cancer")
clean = RangeScaler().fit_transform(data.data)
X, pairs = corrupt(clean, data.target, noise_level=0.4, noise_scale=1.0, random_state=1)

cafe = CAFE(n_clusters=2, random_state=0).fit(X)
print(f"chosen p: {cafe.p_:g}")
print(f"agreement with the classes (ARI): {adjusted_rand_score(data.target, cafe.labels_):.2f}")

# %%
# Clusters have no names, so each is matched with the class it holds most of.

matches = confusion_matrix(data.target, cafe.labels_)
_, cluster_of_class = linear_sum_assignment(-matches)
weights = cafe.feature_weights_[cluster_of_class]

# %%
# A dark cell is a low weight, a cross is noise. In the compact benign cluster the crosses
# are the dark cells. The malignant rows vary on most features by themselves, so that some
# of the features without noise weigh as little as those with it: to the method, high
# dispersion is noise wherever it comes from.

figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
image = axes.imshow(weights, cmap="cividis", vmin=0, aspect="auto")
for label, feature in np.argwhere(pairs):
    axes.plot(feature, label, "x", color="white", markersize=14, markeredgewidth=2.5)
names = [name.replace("_", " ") for name in data.feature_names]
axes.set_xticks(range(9), names, rotation=35, ha="right", rotation_mode="anchor")
axes.set_yticks(range(2), [f"class {name}" for name in data.target_names])
axes.set_title("Feature weights of each class's cluster; crosses: noise was added")
figure.colorbar(image, label="weight")
plt.show()
