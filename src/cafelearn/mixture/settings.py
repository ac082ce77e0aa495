"""The constants of the mixture and of the choice, each with its reason."""

from typing import NamedTuple


class Settings(NamedTuple):
    """Constants; docs/answers.md has the ablation of each."""

    # A value is an atom of its column if at least this share of the rows has it.
    atom: float = 0.1
    # Rows that the prior adds to the variance of each cluster and column, with the variance of
    # all rows. It prevents clusters without any spread, and little else.
    prior_rows: float = 0.1
    # Rows that the prior adds to the categories of each cluster, with the shares of all rows.
    prior_categories: float = 1.0
    # Smallest variance of a direction within a cluster, relative to a column of variance 1.
    # Without it, columns that nearly repeat each other make clusters out of rounding errors.
    least_variance: float = 0.01
    # Degrees of freedom of the t distribution, the heavy-tailed alternative to the normal.
    degrees: float = 4.0
    # Largest share of the background.
    background: float = 0.1
    # Largest number of normal densities in the free-form density of a column.
    marginal_components: int = 4
    # Exponents of the power transformations of skewed columns.
    powers: tuple = ((0.0, 0.1), (0.0, 1.0), (0.33, 1.0), (0.67, 1.0))
    # Number of k-means clusters within which the skewness of a column is judged.
    power_clusters: int = 5
    # Columns depend on each other only if there are at most this many: the time grows with the
    # third power.
    dependent_columns: int = 100
    # The search uses at most this many rows; the other rows are used in the last iterations.
    search_rows: int = 2_000
    # Iterations of a first look at each start, and of the best starts.
    first_iterations: int = 4
    last_iterations: int = 100
    # Iterations on all rows, after a search on some of them.
    all_iterations: int = 20
    # The descent ends if an iteration gains less than this, per row.
    tolerance: float = 1e-4
    # Random halves of the rows that are fitted again to see how sure the labels are.
    halves: int = 4
    # Stability from which the confidence is high, and below which it is low.
    high_stability: float = 0.85
    low_stability: float = 0.6
    # Stands for 0 where a logarithm or a quotient needs a positive number.
    tiny: float = 1e-9


SETTINGS = Settings()
