"""
A report from a notebook
========================

Write one HTML file that describes a fit, for readers without Python.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from cafelearn import CAFE
from cafelearn.plotting import EmbeddingDisplay
from cafelearn.report import write_fit_report

wine = load_wine(as_frame=True)
cafe = CAFE(n_clusters=3, n_components=2, n_init=20, random_state=0).fit(wine.data)

# %%
# The file can be opened without a network connection or a server. It contains names, classes,
# statistics and the extracted features, but not the measurements. An existing file is replaced
# only with ``force=True``.

path = write_fit_report(
    cafe,
    wine.data,
    Path(mkdtemp()) / "wine.html",
    y=wine.target_names[wine.target],
    title="Wine",
    source="178 wines of three cultivars, 13 chemical measurements (UCI repository)",
)
print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")

# %%
# If the file is in the directory of a notebook,
# ``IPython.display.IFrame(path, width="100%", height=600)`` shows the report below the cell.
# The charts of the report are also available as matplotlib figures:

EmbeddingDisplay.from_estimator(cafe, wine.data, y=wine.target_names[wine.target])
plt.show()
