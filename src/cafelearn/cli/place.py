"""cafe transform and cafe explain: apply a fitted model to rows."""

from pathlib import Path
from typing import Annotated

import typer

from cafelearn.cli import options
from cafelearn.cli.session import session
from cafelearn.cli.tables import bar, make_table, plain, short

MOST = 12  # features to show by default
WIDE = 100  # smallest width of the output, in characters, that has space for weights


def transform(
    model: options.Model,
    data: options.LargeData,
    out: Annotated[Path, typer.Option(help=options.OUT)],
    row_id: Annotated[
        str | None,
        typer.Option("--id", help="Column of row names; by default, that of the fit."),
    ] = None,
    jobs: options.Jobs = -1,
    scheduler: options.Scheduler = None,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Extract the features of new rows with a fitted model."""
    with session("transform", quiet, as_json, debug) as run:
        options.make_reading(delimiter, decimal, missing, no_header, thousands)
        is_large = _check_files(out, force, model, data, scheduler)
        estimator = _load(model)
        if is_large:
            labels = _transform_large(run, estimator, data, row_id, jobs, scheduler, out, force)
        else:
            reading = options.reading_like_fit(
                estimator, delimiter, decimal, missing, no_header, thousands, row_id
            )
            labels = _transform(run, estimator, data, row_id, jobs, reading, out, force)
        counts = {int(l): int((labels == l).sum()) for l in sorted(set(labels.tolist()))}
        run.facts["clusters"] = [{"cluster": l, "rows": n} for l, n in counts.items()]
        run.facts["files"] = {"features": out}
        shown = ", ".join(f"{l}: {n:,}" for l, n in counts.items())
        run.say(f"Rows in each cluster: {shown}")
        run.say(f"Wrote the features to {out}")


def _check_files(out, force, model, data, scheduler):
    """Check all files before reading them; return whether the data is read with Dask."""
    from cafelearn.cli.parts import check_features, check_scheduler
    from cafelearn.cli.writing import check_outputs, kind_of

    is_large = check_scheduler(data, scheduler)
    if is_large:
        check_features(out, force, data=data, model=model)
    else:
        check_outputs({"--out": out}, force, model, data)
        kind_of(out)
    return is_large


def _transform(run, estimator, data, row_id, jobs, reading, out, force):
    """Write the features of a table in memory; return the clusters of its rows."""
    from cafelearn.cli.reading import read_and_tell
    from cafelearn.cli.writing import write_table
    from cafelearn.interpret.placed import Placed

    frame, _ = read_and_tell(run, data, reading, run.note)
    names = row_names(estimator, frame, row_id)
    estimator.cafe_.model_.set_params(n_jobs=jobs)
    placed = Placed(estimator, estimator.encode(frame))
    write_table(features_table(placed, names), out, force)
    return placed.labels


def _transform_large(run, estimator, data, row_id, jobs, scheduler, out, force):
    """Write the features of a table larger than memory; return the clusters of its rows."""
    from cafelearn.cli.large import open_and_tell
    from cafelearn.cli.parts import computing, place_parts

    with computing(scheduler, jobs):
        large = open_and_tell(run, data, run.note, row_id or estimator.id_column)
        id_column = _id_column(estimator, large.frame.columns, row_id)
        return place_parts(run, estimator, large, id_column, out, force)[0]


def explain(
    model: options.Model,
    data: options.Data,
    row: Annotated[int | None, typer.Option(help="Number of the row, from 0.", min=0)] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Value of the row in the id column of the fit.")
    ] = None,
    features: Annotated[
        int, typer.Option(help="Number of features to show; 0 shows all.", min=0)
    ] = MOST,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Show which features put a row in its cluster rather than in the second best one."""
    with session("explain", quiet, as_json, debug) as run:
        from cafelearn.cli.reading import read_and_tell
        from cafelearn.interpret.explanation import explain as contributions

        if (row is None) == (row_id is None):
            raise ValueError("name the row with either --row or --id.")
        estimator = _load(model)
        reading = options.reading_like_fit(
            estimator, delimiter, decimal, missing, no_header, thousands
        )
        frame, _ = read_and_tell(run, data, reading, run.note)
        place = _row_of(estimator, frame, row, row_id)
        # Encode only this row, so that invalid values in other rows do not matter.
        found = contributions(estimator, frame.iloc[[place]], 0)
        name = f"row {place}" if row_id is None else f"row {place} ({row_id})"
        _show(run, found, name, place, features or len(found))


def features_table(placed, names=None, first=0):
    """Make the table that fit and transform write: name, cluster, margin and features.

    `names` is a Series of row names. If it is None, rows are numbered from `first`.
    """
    import pandas as pd

    table = pd.DataFrame(placed.features, columns=placed.inner.get_feature_names_out())
    table.insert(0, "margin", placed.margin)
    table.insert(0, "cluster", placed.labels)
    if names is None:
        table.insert(0, "row", range(first, first + len(table)))
    else:
        name = f"{names.name} (id)" if names.name in table.columns else names.name
        table.insert(0, name, names.array)
    return table


def row_names(estimator, frame, wanted=None):
    """Return the column `wanted` of row names.

    By default, return the id column of the fit, or None if the table has no such column.
    """
    column = _id_column(estimator, frame.columns, wanted)
    return None if column is None else frame[column]


def _id_column(estimator, columns, wanted=None):
    if wanted is not None and wanted not in columns:
        raise ValueError(f"--id {wanted!r}: there is no such column.")
    own = estimator.id_column
    return wanted or (own if own in columns else None)


def _load(path):
    from cafelearn.estimators.tabular import TabularCAFE
    from cafelearn.files.models import load_model

    model = load_model(path)
    if not isinstance(model, TabularCAFE):
        raise ValueError(
            f"{path} contains a {type(model).__name__}; the command needs a model written by "
            "cafe fit."
        )
    return model


def _row_of(estimator, frame, row, row_id):
    if row is not None:
        if row >= len(frame):
            raise ValueError(f"--row {row}: the table has rows 0 to {len(frame) - 1}.")
        return row
    names = row_names(estimator, frame)
    if names is None:
        raise ValueError(
            "--id needs a model that was fitted with --id and a table with the same column; "
            "use --row instead."
        )
    places = (names.astype(str) == row_id).to_numpy().nonzero()[0]
    if len(places) != 1:
        found = "no row has" if not len(places) else f"{len(places)} rows have"
        raise ValueError(f"--id {row_id!r}: {found} this value in column {names.name!r}.")
    return int(places[0])


def _show(run, found, name, place, most):
    from cafelearn.interpret.profiles import percent

    facts = dict(found.attrs)
    rows = found.rename_axis("feature").reset_index().to_dict("records")
    run.facts |= {"row": place} | facts | {"features": rows}
    first, second = facts["first"], facts["second"]
    is_mixture = "log_ratio" in facts
    run.say(
        f"{name[0].upper()}{name[1:]} is in cluster {first}; the second "
        f"{'most likely' if is_mixture else 'nearest'} is cluster {second}"
    )
    if is_mixture:
        one, two = (
            f"{share:.3f}" if share >= 0.0005 else f"{share:.1g}"
            for share in (facts["first_probability"], facts["second_probability"])
        )
        run.say(
            f"Probabilities {one} and {two}, margin {facts['margin']:.3f}; log ratio "
            f"{facts['log_ratio']:.3g}, of which {facts['prior']:.2g} by the sizes of the "
            "clusters"
        )
    else:
        run.say(
            f"Distances {facts['first_distance']:.4g} and {facts['second_distance']:.4g}, "
            f"margin {facts['margin']:.3f}, p = {facts['p']:g}"
        )
    shares = found["share"].round(9)
    what = "log ratio" if is_mixture else "difference"
    run.show(
        f"Shares of the {what}: {percent(shares.clip(lower=0).sum())} for cluster {first} "
        f"(+), {percent(shares.clip(upper=0).abs().sum())} for cluster {second} (-)",
        _table(found, first, second, most, with_weights=run.width() >= WIDE),
    )
    if most < len(found):
        rest, count = shares.iloc[most:].sum(), len(found) - most
        others = "feature adds" if count == 1 else f"{count:,} features add"
        run.say(f"The other {others} {rest:+.1%}")


def _table(found, first, second, most, with_weights):
    from cafelearn.interpret.explanation import values_shown

    largest = found["share"].abs().max() or 1.0
    columns = ["feature", ">value", f">centre {first}", f">centre {second}"]
    weights = []
    if with_weights:
        columns += [f">weight {first}", f">weight {second}"]
        weights = ["first_weight", "second_weight"]
    found = found.head(most)
    shown = values_shown(found)
    table = make_table(*columns, ">share", "")
    for feature, values in found.iterrows():
        table.add_row(
            plain(short(feature, 30)),
            *(plain(short(text, 30)) for text in shown.loc[feature]),
            *(f"{values[name]:.4g}" for name in weights),
            f"{round(values['share'], 3) + 0.0:+.1%}",
            bar(values["share"] / largest),
        )
    return table
