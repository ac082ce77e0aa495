"""Sphinx settings. `make docs` builds the documentation without network access."""

import re
import warnings
import zlib
from pathlib import Path

import matplotlib as mpl
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import cafelearn

HERE = Path(__file__).parent

project = "cafelearn"
author = "The cafelearn developers"
project_copyright = author
version = release = cafelearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# The files in results are generated. They are included in pages, but are not pages themselves.
exclude_patterns = ["_build", "results"]
templates_path = ["_templates"]
nitpicky = True

# Docstrings -------------------------------------------------------------------------------

autosummary_generate = True
# The docstrings give the types of all parameters; type hints would only repeat them.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    # scikit-learn adds these methods; their text refers to scikit-learn's user guide.
    "exclude-members": "set_fit_request, set_score_request, set_output, get_metadata_routing"
}
# The page of a class documents its methods in full.
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# The copy button copies the code of an example without its prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Markdown ---------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

# Links to other packages ------------------------------------------------------------------

# An inventory written here replaces those of the packages, which are on the network.
SKLEARN = "scikit-learn.org/stable/modules/generated/"
ELSEWHERE = {
    "joblib.parallel_config py:function": (
        "joblib.readthedocs.io/en/stable/generated/joblib.parallel_config.html"
    ),
    "matplotlib.axes.Axes.barh py:method": (
        "matplotlib.org/stable/api/_as_gen/matplotlib.axes.Axes.barh.html"
    ),
    "matplotlib.axes.Axes.imshow py:method": (
        "matplotlib.org/stable/api/_as_gen/matplotlib.axes.Axes.imshow.html"
    ),
    "matplotlib.axes.Axes.scatter py:method": (
        "matplotlib.org/stable/api/_as_gen/matplotlib.axes.Axes.scatter.html"
    ),
    "pandas.DataFrame py:class": ("pandas.pydata.org/docs/reference/api/pandas.DataFrame.html"),
    "round py:function": "docs.python.org/3/library/functions.html#round",
    "sklearn.metrics.silhouette_score py:function": (
        f"{SKLEARN}sklearn.metrics.silhouette_score.html"
    ),
    **{
        f"{name} py:class": f"{SKLEARN}{name}.html"
        for name in (
            "sklearn.cluster.HDBSCAN",
            "sklearn.cluster.KMeans",
            "sklearn.decomposition.NMF",
            "sklearn.decomposition.FastICA",
            "sklearn.decomposition.PCA",
            "sklearn.exceptions.ConvergenceWarning",
            "sklearn.mixture.GaussianMixture",
            "sklearn.neural_network.MLPRegressor",
            "sklearn.pipeline.Pipeline",
            "sklearn.preprocessing.MinMaxScaler",
            "sklearn.preprocessing.StandardScaler",
        )
    },
}


def write_inventory(path):
    """Write ELSEWHERE as an intersphinx inventory and return its path."""
    head = "# Sphinx inventory version 2\n# Project: elsewhere\n# Version: 1\n"
    head += "# The remainder of this file is compressed using zlib.\n"
    lines = "".join(f"{name} 1 {url} -\n" for name, url in sorted(ELSEWHERE.items()))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(head.encode() + zlib.compress(lines.encode()))
    return str(path)


intersphinx_mapping = {
    "elsewhere": ("https://", write_inventory(HERE / "_build" / "elsewhere.inv")),
}

# Examples ---------------------------------------------------------------------------------

mpl.use("Agg")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "doc_module": ("cafelearn",),
    "reference_url": {"cafelearn": None},
    "backreferences_dir": "api/backreferences",
    "image_scrapers": ("matplotlib",),
    "write_computation_times": False,
}
# A UserWarning in an example ends the build.
warnings.filterwarnings("error", category=UserWarning, module="__main__")

# Pages ------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_title = f"cafelearn {release}"
html_static_path = ["_static"]
html_css_files = ["cafelearn.css"]
html_show_sourcelink = False
# Pages without subpages need no navigation list.
html_sidebars = {
    page: []
    for page in (
        *("index", "tour", "answers", "guarantees", "theory", "reproduction"),
        *("benchmarks", "design", "changelog", "contributing"),
    )
}
html_theme_options = {
    "logo": {"text": "cafelearn"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 5,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


# Hooks ------------------------------------------------------------------------------------


def escape_trailing_underscores(app, what, name, obj, options, lines):
    """Escape trailing underscores in the types of attributes.

    Sphinx would turn them into links, as in ``names_ : ndarray of shape (n_features_in_,)``.
    """
    for i, line in enumerate(lines):
        if re.match(r"\w+_ : ", line):
            head, kind = line.split(" : ", 1)
            lines[i] = f"{head} : " + re.sub(r"(?<=\w)_(?!\w)", r"\_", kind)


def find_in_other_modules(app, env, node, contnode):
    """Resolve a name given without its module by looking for it in all modules."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True
    return env.get_domain("py").resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], node["reftarget"], node, contnode
    )


def write_math(writer, node):
    """Render formulas as MathML, which needs no external script."""
    block = isinstance(node, nodes.math_block)
    writer.body.append(str(tex2mathml(node.astext(), as_block=block)))
    raise nodes.SkipNode


def setup(app):
    """Connect the hooks."""
    # With priority 400 the hook runs before numpydoc reads the docstring.
    app.connect("autodoc-process-docstring", escape_trailing_underscores, priority=400)
    app.connect("missing-reference", find_in_other_modules)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
