"""
Unseen rows
===========

Assign new rows to the clusters of a fitted CAFE and extract their features. The assignment
margin shows which assignments are doubtful.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt, load
from cafelearn.plotting import EmbeddingDisplay

# %%
# Add noise to Breast Cancer, fit CAFE to three quarters of the rows, and predict the clusters
# of the others. Each new row is scaled as in the fit and assigned to the nearest centre.

data = load("breast_cancer")
X, _ = corrupt(RangeScaler().fit_transform(data.data), data.target, 0.4, 1.0, random_state=1)
X_train, X_new, y_train, y_new = train_test_split(X, data.target, random_state=0)

cafe = CAFE(n_clusters=2, n_components=2, rescaling="centroid", random_state=0).fit(X_train)
print(f"training rows: ARI {adjusted_rand_score(y_train, cafe.labels_):.2f}")
print(f"new rows:      ARI {adjusted_rand_score(y_new, cafe.predict(X_new)):.2f}")

# %%
# Draw the extracted features of the new rows, coloured by cluster and by class. Each class is
# matched to one cluster and has the colour of this cluster, so a row whose colour differs
# between the two plots is an error.

names = np.array(data.target_names)[y_new]
EmbeddingDisplay.from_estimator(cafe, X_new, y=names)
plt.show()

# %%
# A row with a small margin is almost as close to the other centre as to its own. Errors are
# more frequent among the rows with the smallest margins than among the other rows.

margin = cafe.assignment_margin(X_new)
wrong = cafe.predict(X_new) != y_new
wrong = wrong if wrong.mean() < 0.5 else ~wrong
doubtful = margin < np.quantile(margin, 0.2)
print(f"errors among the 20% most doubtful rows: {wrong[doubtful].mean():.0%}")
print(f"errors among the others:                 {wrong[~doubtful].mean():.0%}")
