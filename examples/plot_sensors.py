"""
Sensors that work in some modes only
====================================

Find the operating modes of a machine, and the sensors that are reliable in each mode.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from cafelearn import CAFE
from cafelearn.plotting import NoisePairsDisplay

# %%
# A pump runs in three modes, which its log records. Twelve sensors are read every minute for
# 20 hours. A sensor usually has a typical level in each mode, but it may be useless in some
# modes. For example, the flow while the pump is idle may be below the threshold of the flow
# meter. A third of the 36 pairs of a mode and a sensor are useless; their readings are uniform
# over the range of the sensor.

rng = np.random.default_rng(1)
MODES = ("idle", "normal", "boost")
SENSORS = (
    *("flow", "pressure in", "pressure out", "current", "voltage", "speed"),
    *("vibration x", "vibration y", "sound", "oil temperature", "case temperature", "torque"),
)
switches = np.sort(rng.choice(np.arange(60, 1200, 20), 14, replace=False))
mode = np.repeat(rng.permutation(np.arange(15) % 3), np.diff([0, *switches, 1200]))
levels = rng.uniform(40, 60, size=(3, len(SENSORS)))
useless = np.zeros((3, len(SENSORS)), dtype=bool)
useless.flat[rng.choice(useless.size, useless.size // 3, replace=False)] = True
readings = rng.normal(levels[mode], 4)
readings = np.where(useless[mode], rng.uniform(0, 100, readings.shape), readings)
table = pd.DataFrame(readings, columns=SENSORS)

# %%
# Cluster the readings without the log. k-means gives all sensors the same weight; CAFE gives
# each sensor a weight in each mode.

cafe = CAFE(3, random_state=0).fit(table)
scaled = StandardScaler().fit_transform(table)
plain = KMeans(3, n_init=20, random_state=0).fit_predict(scaled)
for name, labels in {"k-means": plain, "CAFE": cafe.labels_}.items():
    print(f"{name:8s} agreement with the log (ARI) {adjusted_rand_score(mode, labels):.2f}")

# %%
# Top: the readings of a sensor that is useless in two of the three modes. Bottom: the modes
# that CAFE finds from all sensors, and those in the log.

worst = int(useless.sum(axis=0).argmax())
hours = np.arange(len(table)) / 60
mode_of = pd.crosstab(cafe.labels_, mode).idxmax(axis=1).to_numpy()
figure, axes = plt.subplots(2, 1, figsize=(9, 4.2), sharex=True, layout="constrained")
axes[0].plot(hours, table.iloc[:, worst], ".", ms=2.5, color="#0072B2")
axes[0].set_ylabel(SENSORS[worst])
axes[1].plot(hours, mode, drawstyle="steps-post", color="#BBBBBB", lw=6, label="log")
axes[1].plot(hours, mode_of[cafe.labels_], ".", ms=3, color="#D55E00", label="CAFE")
axes[1].set_yticks(range(3), MODES)
axes[1].set_xlabel("hours")
axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1), markerscale=3)
plt.show()

# %%
# In practice it is not known which sensors are useless, but the weights show it. For each
# cluster, list the sensors whose weight is less than a third of 1/12, the equal weight.

for cluster, row in cafe.weights_frame().iterrows():
    doubtful = row[row < 1 / 3 / len(row)].index
    print(f"{cluster}: do not rely on {', '.join(doubtful)}")

# %%
# In this example the useless sensors are known. Dark cells are low weights; crosses mark
# useless pairs. The printed probability is 100% if every useless pair has a lower weight than
# every other pair. With random weights it would be about 50%.

display = NoisePairsDisplay.from_estimator(
    cafe, useless, mode, class_names=MODES, feature_names=SENSORS
)
print(f"probability that a useless pair weighs less than another: {display.ranked_right:.0%}")
plt.show()

# %%
# **Result:** the mode can be inferred from the sensors without a log, and for each mode
# there is a list of sensors to repair or to ignore. Only a few sensors work in all modes:

print(f"sensors that work in all modes: {(~useless.any(axis=0)).sum()} of {len(SENSORS)}")
