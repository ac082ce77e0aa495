"""Convert options of `cafe fit` to parameters of CAFE."""

from cafelearn.base.words import listed

SCALINGS = {"range": "range", "standard": "standard", "none": None}
OFFSETS = ("mean", "fixed")
# Parameters of CAFE whose command-line option has a different name.
OPTIONS = {"dispersion_offset": "offset", "n_init": "n-init"}


def method_settings(paper, selection, p, scaling, weighting, offset, rescaling, n_init):
    """Return the parameters of CAFE that define the candidates and the rule of the answer.

    Without --paper, the parameters of options that were not given are left out. With --paper,
    raise ValueError if another option contradicts it.
    """
    from cafelearn.estimators.cafe import PAPER

    exponents = _values(p, _number)
    given = {
        "selection": None if selection is None else selection.value,
        "p": None if exponents is None else tuple(exponents),
        "scaling": _one_or_many(_values(scaling, _scaling)),
        "weighting": _one_or_many(_values(weighting, _weighting)),
        "dispersion_offset": _one_or_many(_values(offset, _offset)),
        "rescaling": rescaling,
        "n_init": n_init,
    }
    # A scaling of None means "no scaling" if the option was given.
    known = {
        name: value
        for name, value in given.items()
        if value is not None or (name == "scaling" and scaling)
    }
    if not paper:
        return known
    for name, value in known.items():
        if value != PAPER[name]:
            option = OPTIONS.get(name, name)
            raise ValueError(
                f"--paper sets --{option} {_text(PAPER[name])}, but --{option} {_text(value)} "
                "is given; omit one of the two."
            )
    return PAPER


def numbers_of_clusters(text):
    """Convert -k to n_clusters of CAFE: one number, "auto", a range or a list."""
    text = text.strip()
    if text == "auto":
        return text
    numbers = []
    for part in text.split(","):
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        high = high if dash else low
        if not (low.isdecimal() and high.isdecimal() and 1 <= int(low) <= int(high)):
            raise ValueError(
                "-k needs a number of clusters (3), 'auto', a range (2-8) or a list (2,3,5), "
                f"got {text!r}."
            )
        numbers += range(int(low), int(high) + 1)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"-k needs distinct numbers of clusters, got {text!r}.")
    return numbers[0] if len(numbers) == 1 else numbers


def _values(texts, parse):
    """Parse an option that may be repeated or comma-separated; return None if not given."""
    if not texts:
        return None
    return [parse(part.strip()) for text in texts for part in text.split(",")]


def _one_or_many(values):
    if values is None or len(values) > 1:
        return values if values is None else tuple(values)
    return values[0]


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--p needs numbers, got {text!r}.") from None


def _scaling(text):
    if text not in SCALINGS:
        raise ValueError(f"--scaling must be one of {listed(SCALINGS, str)}, got {text!r}.")
    return SCALINGS[text]


def _weighting(text):
    from cafelearn.kmeans.kernels.weights import WEIGHTINGS

    if text not in WEIGHTINGS:
        raise ValueError(f"--weighting must be one of {listed(WEIGHTINGS, str)}, got {text!r}.")
    return text


def _offset(text):
    if text in OFFSETS:
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--offset needs mean, fixed or a number, got {text!r}.") from None


def _text(value):
    """Format a value as on the command line."""
    if isinstance(value, tuple):
        return ",".join(_text(item) for item in value)
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:g}"
