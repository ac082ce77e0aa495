"""The constants of the mixture and of the choice, each with its reason."""

from typing import NamedTuple


class Settings(NamedTuple):
    """Constants that change the answers; docs/answers.md has the ablation of each."""

    # A value is an atom of its column if at least this share of the rows has it.
    atom: float = 0.1
    # Rows that the prior adds to each cluster: to the variance of each column, with that of all
    # rows, and to categories, with the shares of all rows. It prevents clusters without any
    # spread and probabilities of 0, and little else.
    prior: float = 0.1
    # Smallest variance of a direction within a cluster, relative to a column of variance 1.
    # Without it, columns that nearly repeat each other make clusters out of rounding errors.
    least_variance: float = 0.01
    # Degrees of freedom of the t distribution, the heavy-tailed alternative to the normal.
    degrees: float = 4.0
    # Largest share of the background, and of rows that are set aside as isolated.
    background: float = 0.1
    # Largest number of normal densities in the free-form density of a column.
    marginal_components: int = 4
    # Exponents of the power transformations of skewed columns, and their widths relative to the
    # median distance from the edge.
    powers: tuple = ((0.0, 0.1), (0.0, 1.0), (0.33, 1.0), (0.67, 1.0))
    # Number of k-means clusters within which the skewness of a column is judged.
    power_clusters: int = 5
    # Candidates of mwk-means that the mixture starts from.
    candidates: int = 2
    # Part of the entropy of the memberships that the criterion of the number of clusters
    # subtracts from the penalised likelihood. BIC subtracts nothing and divides skewed
    # clusters; ICL subtracts all and joins close ones.
    entropy: float = 0.5
    # A difference of the criterion up to this is no evidence. Bayes factors above exp(5) count
    # as strong; here they are wanted for both of the models that are compared.
    margin: float = 10.0
    # A cluster has at least this share of the rows, if the number of clusters is chosen.
    smallest: float = 0.01
    # Two clusters are apart if the density between them is below this part of the lower peak.
    gap: float = 0.9
    # Stability from which the confidence is high, and below which it is low.
    high_stability: float = 0.85
    low_stability: float = 0.6


class Limits(NamedTuple):
    """Limits of time: larger ones give about the same answers more slowly."""

    # Columns depend on each other only if there are at most this many: the time grows with the
    # third power. To choose the number of clusters, full covariance matrices have a limit of
    # their own.
    dependent_columns: int = 100
    full_columns: int = 16
    # Searches use at most this many rows; the other rows are used in the last iterations.
    search_rows: int = 2_000
    # Iterations of a first look at each start, and of the best starts.
    first_iterations: int = 4
    last_iterations: int = 100
    # Iterations on all rows, after a search on some of them.
    all_iterations: int = 20
    # The descent ends if an iteration gains less than this, per row.
    tolerance: float = 1e-4
    # Starts that are kept for each covariance structure, and families that descend to the end.
    starts: int = 2
    families: int = 3
    # Mixtures of a search whose clusters are starts for the best families.
    mixtures: int = 6
    # Random halves of the rows that are fitted again to see how sure the labels are.
    halves: int = 4
    # Copies of a single cloud that are drawn to judge discrete columns.
    copies: int = 5


SETTINGS, LIMITS = Settings(), Limits()
# Stands for 0 where a logarithm or a quotient needs a positive number.
TINY = 1e-9
# Fewest neighbours, members or rows from which anything is concluded.
FEW = 5
