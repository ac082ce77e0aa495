"""Metadata of each data set."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Entry:
    """A data set: its description, its classes in the order of their codes, and its categories.

    `categories` maps the name of each categorical attribute to its values.
    """

    description: str
    classes: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _numbers(first, last):
    return tuple(str(number) for number in range(first, last + 1))


_SOURCE = " From the UCI Machine Learning Repository, licensed under CC BY 4.0."
_PRICES = ("vhigh", "high", "med", "low")

CATALOGUE = {
    "australian_credit": Entry(
        "Statlog (Australian Credit Approval): 690 applications for a credit card, whose 14 "
        "attributes and two classes were anonymised by the donor. Attributes 1, 4, 5, 6, "
        "8, 9, 11 and 12 are categorical. In the packaged copy attributes 2, 3 and 7 "
        "are stored without their decimal points (22.08 as 2208, 11.5 as 115), so these three "
        "columns differ from those of the repository." + _SOURCE,
        classes=("0", "1"),
        categories={
            "a1": ("0", "1"),
            "a4": ("1", "2", "3"),
            "a5": _numbers(1, 14),
            # The repository's documentation also lists the value 6, which does not occur.
            "a6": ("1", "2", "3", "4", "5", "7", "8", "9"),
            "a8": ("0", "1"),
            "a9": ("0", "1"),
            "a11": ("0", "1"),
            "a12": ("1", "2", "3"),
        },
    ),
    "balance_scale": Entry(
        "Balance Scale: all 625 settings of a scale with weights 1 to 5 at distances 1 to 5 on "
        "either arm, and whether it tips to the left, stays balanced or tips to the right. All "
        "four attributes are treated as categorical." + _SOURCE,
        classes=("left", "balanced", "right"),
        categories={
            "left_weight": _numbers(1, 5),
            "left_distance": _numbers(1, 5),
            "right_weight": _numbers(1, 5),
            "right_distance": _numbers(1, 5),
        },
    ),
    "breast_cancer": Entry(
        "Breast Cancer Wisconsin (Original): nine cytological grades from 1 to 10 of 683 "
        "breast tumours, benign or malignant. Of the original 699 rows, the 16 with a "
        "missing value are left out." + _SOURCE,
        classes=("benign", "malignant"),
    ),
    "car_evaluation": Entry(
        "Car Evaluation: all 1728 combinations of six categorical properties of a car, and its "
        "acceptability according to a hierarchical decision model." + _SOURCE,
        classes=("unacc", "acc", "good", "vgood"),
        categories={
            "buying": _PRICES,
            "maint": _PRICES,
            "doors": ("2", "3", "4", "5more"),
            "persons": ("2", "4", "more"),
            "lug_boot": ("small", "med", "big"),
            "safety": ("low", "med", "high"),
        },
    ),
    "ecoli": Entry(
        "Ecoli: seven scores of the amino acid sequences of 336 proteins of E. coli, and the "
        "location of each protein in the cell." + _SOURCE,
        classes=("cp", "im", "pp", "imU", "om", "omL", "imL", "imS"),
    ),
    "glass": Entry(
        "Glass Identification: the refractive index of 214 pieces of glass of six kinds, and "
        "their content of each of eight oxides." + _SOURCE,
        classes=(
            "building_windows_float_processed",
            "building_windows_non_float_processed",
            "vehicle_windows_float_processed",
            "containers",
            "tableware",
            "headlamps",
        ),
    ),
    "ionosphere": Entry(
        "Ionosphere: 351 radar returns, good or bad, each with 33 numbers that describe the "
        "received signal. The second of the repository's 34 attributes is left out, because it "
        "is constant. The packaged copy is rounded to three decimals." + _SOURCE,
        classes=("bad", "good"),
    ),
    "iris": Entry(
        "Iris: length and width of the sepals and petals of 150 flowers of three species. The "
        "values are those of Fisher's article, as in scikit-learn; the repository's own file "
        "differs in two rows." + _SOURCE,
        classes=("setosa", "versicolor", "virginica"),
    ),
    "teaching_assistant": Entry(
        "Teaching Assistant Evaluation: 151 assignments of teaching assistants at the "
        "Statistics Department of the University of Wisconsin-Madison, with a low, medium or "
        "high evaluation. Class size is numeric; the other four attributes are categorical."
        + _SOURCE,
        classes=("low", "medium", "high"),
        categories={
            "native_speaker": ("1", "2"),
            "instructor": _numbers(1, 25),
            "course": _numbers(1, 26),
            "semester": ("1", "2"),
        },
    ),
}
