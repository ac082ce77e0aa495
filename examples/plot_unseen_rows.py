"""
Unseen rows
===========

A fitted CAFE scales a new row, assigns it to the nearest centre, rescales it and extracts its
features. The assignment margin shows which assignments are doubtful.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt, load
from cafelearn.plotting import EmbeddingDisplay

data = load("breast_cancer")
X, _ = corrupt(RangeScaler().fit_transform(data.data), data.target, 0.4, 1.0, random_state=1)
X_train, X_new, y_train, y_new = train_test_split(X, data.target, random_state=0)

cafe = CAFE(n_clusters=2, n_components=2, rescaling="centroid", random_state=0).fit(X_train)
print(f"training rows: ARI {adjusted_rand_score(y_train, cafe.labels_):.2f}")
print(f"new rows:      ARI {adjusted_rand_score(y_new, cafe.predict(X_new)):.2f}")

# %%
# The new rows, coloured by cluster and by class. A class has the colour of the cluster that
# contains most of its rows, so rows whose colours differ between the two plots are errors.

names = np.array(data.target_names)[y_new]
EmbeddingDisplay.from_estimator(cafe, X_new, y=names)
plt.show()

# %%
# Errors are most frequent among rows with a small margin, which are almost as close to the
# other centre as to their own.

margin = cafe.assignment_margin(X_new)
wrong = cafe.predict(X_new) != y_new
wrong = wrong if wrong.mean() < 0.5 else ~wrong
doubtful = margin < np.quantile(margin, 0.2)
print(f"errors among the 20% most doubtful rows: {wrong[doubtful].mean():.0%}")
print(f"errors among the others:                 {wrong[~doubtful].mean():.0%}")
