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
    from cafelearn.kmeans.kernels.weights import WEIGHTINGS

    weightings = {name: name for name in WEIGHTINGS}
    given = {
        "selection": selection and selection.value,
        "p": _values(p, lambda text: _number(text, f"--p needs numbers, got {text!r}.")),
        "scaling": _values(scaling, lambda text: _one_of("scaling", SCALINGS, text)),
        "weighting": _values(weighting, lambda text: _one_of("weighting", weightings, text)),
        "dispersion_offset": _values(offset, _offset),
        "rescaling": rescaling,
        "n_init": n_init,
    }
    known = {}
    for name, value in given.items():
        if isinstance(value, tuple) and len(value) == 1 and name != "p":
            known[name] = value[0]
        elif value is not None:
            known[name] = value
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
    return tuple(parse(part.strip()) for text in texts for part in text.split(","))


def _number(text, message):
    try:
        return float(text)
    except ValueError:
        raise ValueError(message) from None


def _one_of(option, known, text):
    if text not in known:
        raise ValueError(f"--{option} must be one of {listed(known, str)}, got {text!r}.")
    return known[text]


def _offset(text):
    message = f"--offset needs mean, fixed or a number, got {text!r}."
    return text if text in OFFSETS else _number(text, message)


def _text(value):
    """Format a value as on the command line."""
    if isinstance(value, tuple):
        return ",".join(_text(item) for item in value)
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:g}"
