"""
Reading the weights
===================

Show the weights as a heat map and as text, and explain the cluster of a single row.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from cafelearn import CAFE
from cafelearn.explanation import explain
from cafelearn.plotting import ExplanationDisplay, WeightsDisplay

wine = load_wine(as_frame=True)

# %%
# On clean data CAFE may choose equal weights; ``weighting="cluster"`` excludes them.

cafe = CAFE(n_clusters=3, weighting="cluster", n_init=20, random_state=0).fit(wine.data)

# %%
# In each cluster the weights sum to 1. With 13 features, equal weights would be 1/13 = 0.08;
# this value is marked on the colour bar. Features are sorted by how much their weights differ
# between the clusters.

WeightsDisplay.from_estimator(cafe, sort_features=True)
plt.show()

# %%
# Print the features with the highest and the lowest weights in each cluster.

for name, weights in cafe.weights_frame().iterrows():
    ordered = weights.sort_values()
    most = ", ".join(f"{feature} {w:.2f}" for feature, w in ordered.iloc[:-4:-1].items())
    least = ", ".join(f"{feature} {w:.2f}" for feature, w in ordered.iloc[:3].items())
    print(f"{name}\n  most:  {most}\n  least: {least}")

# %%
# How does each feature affect the cluster of one row? The row with the smallest margin is
# almost as close to another centre as to its own. A positive share means that the feature
# favours the row's own cluster, a negative share that it favours the other cluster.

row = int(cafe.assignment_margin(wine.data).argmin())
found = explain(cafe, wine.data, row)
print(
    f"row {row}: nearest cluster {found.attrs['first']}, "
    f"second nearest {found.attrs['second']}, margin {found.attrs['margin']:.3f}"
)
print(found[["value", "first_center", "second_center", "share"]].round(3).to_string())

# %%
# Draw the shares as bars. The positive and the negative shares almost cancel out, so the
# cluster of the row is doubtful.

ExplanationDisplay(found).plot(max_features=13)
plt.show()
