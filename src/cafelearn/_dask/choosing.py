"""Sums over blocks for CAFE's choice among candidates."""

from typing import NamedTuple

from cafelearn._dask.blocks import View
from cafelearn._solver.placing import Model, assign, make_model
from cafelearn.selection import Frame, add_tallies, tally


class Placed(NamedTuple):
    """A fitted model and the scaling of its rows."""

    model: Model
    view: View


class Clusterings(NamedTuple):
    """Request of `tally_block`."""

    placed: list
    frame: Frame


def tally_block(rows, request):
    """The Tally of the rows of one block."""
    labellings, view, seen = [], None, None
    for model, other in request.placed:
        if view is None or other.fit != view.fit:
            view, seen = other, other(rows)
        labellings.append(assign(seen.X, model)[0])
    sizes = [len(model.centers) for model, _ in request.placed]
    return tally(rows.X, labellings, sizes, request.frame, rows.sample_weight)


def count_clusterings(models, blocks, seen, frame):
    """The Tally of all rows for fitted models; `seen` as for `fit_models`."""
    placed = [
        Placed(
            make_model(m.cluster_centers_, m.feature_weights_, m.p, m._scale, blocks.dtype),
            scaled.view,
        )
        for m, (scaled, _) in zip(models, seen, strict=True)
    ]
    return blocks.reduce(tally_block, add_tallies, Clusterings(placed, frame))
