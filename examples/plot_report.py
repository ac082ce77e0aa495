"""
A report from a notebook
========================

One HTML file with everything about a fit, to send to people without Python.
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
# The file needs neither network nor server. It contains names, statistics and the extracted
# features, not the data. An existing file is replaced only with ``force=True``.

path = write_fit_report(
    cafe,
    wine.data,
    Path(mkdtemp()) / "wine.html",
    y=wine.target_names[wine.target],
    title="Wine",
    source="178 wines of three growers, 13 chemical measurements (UCI repository)",
)
print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")

# %%
# In a notebook, ``IPython.display.IFrame(path, width="100%", height=600)`` shows the report
# below the cell if the file is in the folder of the notebook. Its charts are also available as
# matplotlib figures:

EmbeddingDisplay.from_estimator(cafe, wine.data, y=wine.target_names[wine.target])
plt.show()
