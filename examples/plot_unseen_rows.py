"""
Unseen rows
===========

A fitted CAFE places new rows: scale, nearest centre, rescale, extract. The assignment
margin tells where that is doubtful.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt, load

data = load("breast_cancer")
X, _ = corrupt(RangeScaler().fit_transform(data.data), data.target, 0.4, 1.0, random_state=1)
X_train, X_new, y_train, y_new = train_test_split(X, data.target, random_state=0)

cafe = CAFE(n_clusters=2, n_components=2, rescaling="centroid", random_state=0).fit(X_train)
features, margin = cafe.transform(X_new), cafe.assignment_margin(X_new)
print(f"training rows: ARI {adjusted_rand_score(y_train, cafe.labels_):.2f}")
print(f"new rows:      ARI {adjusted_rand_score(y_new, cafe.predict(X_new)):.2f}")

# %%
# Errors gather where the margin is small: the row was about as near to the other centre.

wrong = cafe.predict(X_new) != y_new
wrong = wrong if wrong.mean() < 0.5 else ~wrong
doubtful = margin < np.quantile(margin, 0.2)
print(f"errors among the 20% most doubtful rows: {wrong[doubtful].mean():.0%}")
print(f"errors among the others:                 {wrong[~doubtful].mean():.0%}")

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
dots = axes.scatter(*features.T, c=margin, cmap="cividis", s=28)
axes.scatter(
    *features[wrong].T, marker="x", c="#D55E00", s=70, label="in the other class's cluster"
)
axes.set(xlabel="component 1", ylabel="component 2", title="New rows")
axes.legend()
figure.colorbar(dots, label="assignment margin")
plt.show()
