"""
When CAFE hurts
===============

Two cases in which plain PCA is the better choice: data without clusters, and rare categories.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score

from cafelearn import CAFE, PAPER, RangeScaler
from cafelearn.datasets import load
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.plotting import AgreementDisplay, EmbeddingDisplay

# %%
# No clusters
# -----------
#
# Uniform noise in ten dimensions. CAFE is asked for three clusters and finds three, as any
# k-means would; then it writes them into the features. The settings are those of the paper.

warnings.simplefilter("ignore", DiagnosisWarning)  # see below
X = np.random.default_rng(0).uniform(size=(300, 10))
settings = PAPER | {"n_init": 20}
cafe = CAFE(3, n_components=2, random_state=0, **settings).fit(X)
centroid = clone(cafe).set_params(rescaling="centroid").fit(X)
features = {
    "PCA": PCA(2).fit_transform(RangeScaler().fit_transform(X)),
    "CAFE": cafe.transform(X),
    "CAFE, centroid rescaling": centroid.transform(X),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
for axis, (name, values) in zip(axes, features.items(), strict=True):
    labels = KMeans(3, n_init=20, random_state=0).fit_predict(values)
    score = silhouette_score(values, labels)
    print(f"{name:26s} silhouette {score:.2f}")
    EmbeddingDisplay(values, labels).plot(axis, legend=False)
    axis.set_title(f"{name}\nsilhouette {score:.2f}")
plt.show()

# %%
# The diagnosis says so, and would have been a warning. The agreement between the exponents
# gives it away, too: where there are clear classes, these numbers are high.

for finding in centroid.diagnosis_:
    print(f"{finding.severity}: {finding.message}")
AgreementDisplay.from_estimator(centroid)
plt.show()

# %%
# Rare categories
# ---------------
#
# Most columns of Australian Credit are codes of categories. A cluster is compact on the column
# of a rare category, whatever else it holds, and so the rare ones get the weight. This is why
# the default of CAFE tries uniform weights as well.

credit = load("australian_credit")
X, y = credit.frame.drop(columns="target"), credit.target
cafe = CAFE(2, random_state=0, **settings).fit(X)
plain = PCA(X.shape[1] // 2).fit_transform(RangeScaler().fit_transform(X))
for name, values in {"PCA": plain, "CAFE": cafe.transform(X)}.items():
    labels = KMeans(2, n_init=20, random_state=0).fit_predict(values)
    print(f"{name:5s} ARI to the classes {adjusted_rand_score(y, labels):.2f}")

# %%
# What sets the small cluster apart? Shares of rows with a category, in it and elsewhere.

small = cafe.labels_ == np.bincount(cafe.labels_).argmin()
categories = X.loc[:, X.columns.str.contains("=")]
shares = categories.groupby(small).mean().T.set_axis(["large", "small"], axis=1)
order = (shares["small"] - shares["large"]).abs().sort_values(ascending=False).index
print(f"rows: {(~small).sum()} and {small.sum()}")
print(shares.loc[order[:5]].round(2))
