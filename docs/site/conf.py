"""The site: Sphinx reads the folder that make_site.py puts together, and fetches nothing, nor do the pages."""

import tomllib
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

from exercise_kit.authoring.mistake_pages import map_redirects as moved_pages

HERE = Path(__file__).parent
URLS = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["urls"]

project, author = "vit_course", "The vit_course authors"
copyright = "the vit_course authors; code MIT, lessons and figures CC BY 4.0"
extensions = ["myst_nb", "sphinx_design", "sphinx_reredirects"]
exclude_patterns = ["mistakes/by_*.md"]  # what other pages include

nb_execution_mode = "off"  # as students get them: unsolved
nb_ipywidgets_js = {}  # else fetched from elsewhere
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_update_mathjax = False
html_math_renderer = "mathml"
smartquotes = False
suppress_warnings = ["myst.header"]  # a lesson's cells begin with the heading that they need

html_theme = "pydata_sphinx_theme"
html_title = "vit_course, a Vision Transformer by hand"
html_baseurl = URLS["Homepage"]  # for the address that search engines keep of a page
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_sidebars = {"index": [], "mistakes/**": [], "search": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "vit_course"},
    "icon_links": [{"name": "Source code", "url": URLS["Repository"], "icon": "fa-brands fa-github"}],
    "search_bar_text": "A mistake, a symptom, a word",
    "show_toc_level": 2,
    "secondary_sidebar_items": {"lessons/*": ["page-toc"], "guides/**": ["page-toc"]},
    "footer_start": ["copyright"],
    "footer_end": [],
}
redirects = {
    f"mistakes/{old}": f"{'../' * (old.count('/') + 1)}mistakes/{new}.html"
    for old, new in moved_pages((HERE / "published.txt").read_text("utf-8")).items()
}


def visit_math(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers show without a script or a font of ours."""
    try:
        self.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    except MathError as error:
        logging.getLogger(__name__).warning("no MathML for %s: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add the renderer of formulas."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
