"""
Theory on a fit
===============

Check every claim of the paper on one fit, and plot the objective during a descent.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.plotting import ObjectiveDisplay
from cafelearn.theory import certificate, feature_weights, suppression_bound

# %%
# The data set is like those of the paper's Figures 1 and 2: three Gaussian clusters on four
# features, and four features of uniform noise. The claims are about the weights of Eq. 4, so
# ``dispersion_offset`` is 0.

rng = np.random.default_rng(0)
centers = rng.normal(size=(3, 4))
informative = centers[rng.integers(3, size=1000)] + rng.normal(size=(1000, 4))
X = RangeScaler().fit_transform(np.hstack([informative, rng.uniform(size=(1000, 4))]))
model = MinkowskiWeightedKMeans(3, p=2, dispersion_offset=0, random_state=0).fit(X)
table = certificate(model, X)
print(table[["measured", "bound", "verdict"]])
print(f"\nall hold: {table.all_hold}")

# %%
# Plot the objective after each iteration, for four exponents. The shaded range lies between
# the bounds of Theorem 2 for the last iteration. Without an offset, weights can be extreme;
# warnings about them are silenced.

warnings.simplefilter("ignore", DiagnosisWarning)
settings = PAPER | {"p": (1.1, 1.5, 2.0, 5.0), "dispersion_offset": 0, "n_init": 5}
cafe = CAFE(3, random_state=0, **settings).fit(X)
ObjectiveDisplay.from_estimator(cafe)
plt.show()

# %%
# Theorem 4 bounds the weight of a feature whose dispersion is at least C times that of every
# other feature. Print the weight and its bound for growing C, for eight features of which
# seven have equal dispersions. The bound is then reached.

for p in (1.5, 2.0, 5.0):
    rows = []
    for C in (2.0, 5.0, 20.0):
        weight = feature_weights([1.0] * 7 + [C], p)[-1]
        rows.append(f"C = {C:<3g} {weight:.4f} <= {suppression_bound(C, 8, p):.4f}")
    print(f"p = {p:g}:  " + "   ".join(rows))
