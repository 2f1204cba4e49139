"""The docs site: `make docs` builds it into build/docs."""

import os
import re
import sys
from pathlib import Path

import vnlem

sys.path.insert(0, str(Path(__file__).parent))
import generated_pages

project = "vnlem"
author = "The vnlem developers"
copyright = "The vnlem developers, BSD 3-Clause"
version = release = vnlem.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # the site needs no other server
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["figures", "gallery", "tutorials/data"]
templates_path = ["_templates"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3
myst_fence_as_directive = ["math"]  # as GitHub writes formulas

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections name the types
extlinks = {"doi": ("https://doi.org/%s", "doi:%s")}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    # The page of times loads its table from another site.
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 0,
    # Pages of the API show the examples that use their name.
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("vnlem",),
    "reset_modules": ("matplotlib", "generated_pages.figures_for_any_ground"),
}

html_theme = "pydata_sphinx_theme"
html_title = "vnlem"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_sidebars = {
    page: [] for page in ("index", "start", "choose", "faq", "compare", "citing", "troubleshooting")
}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "vnlem", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# A published site stands next to other versions; tools/publish_docs.py writes their list.
if "DOCS_VERSION" in os.environ:
    html_theme_options |= {
        "navbar_end": ["version-switcher", "theme-switcher"],
        "switcher": {
            "json_url": "../versions.json",
            "version_match": os.environ["DOCS_VERSION"].removeprefix("v"),
        },
        "check_switcher": False,
    }

linkcheck_timeout = 20
linkcheck_retries = 2


def keep_bars(app, what, name, obj, options, lines):
    """Let |K| in a docstring be the size of a set, not a substitution of reST."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`[^`]+`)", line)  # code and formulas stay unchanged
            lines[number] = "".join(
                part if part.startswith("`") else part.replace("|", r"\|") for part in parts
            )


def plain_formulas(app, docname, source):
    """GitHub also writes inline formulas between $` and `$."""
    source[0] = re.sub(r"\$`(.+?)`\$", r"$\1$", source[0])


def back_to_the_docs(app, pagename, templatename, context, doctree):
    """Let pages of source code link to names that are public in another package."""
    if pagename.startswith("_modules/"):
        context["body"] = re.sub(
            r"(generated/api/([\w.]+)\.html#)([\w.]+)",
            lambda found: found[0] if found[3].startswith(found[2]) else found[1] + found[2],
            context["body"],
        )


def setup(app):
    """Write the pages generated from the code, and set up the docstrings."""
    # At once: Sphinx makes summaries only of pages that exist when it starts.
    generated_pages.write(Path(app.srcdir) / "generated")
    app.connect("source-read", plain_formulas)
    app.connect("html-page-context", back_to_the_docs)
    app.connect("autodoc-process-docstring", keep_bars, priority=900)
