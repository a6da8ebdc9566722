import ridgemark

project = "ridgemark"
author = "The ridgemark authors"
release = ridgemark.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 2
html_theme = "furo"
html_show_copyright = False
html_title = f"ridgemark {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
default_role = "code"


def setup(app):
    """Link the glossary from every page."""
    app.connect("source-read", _link_glossary)


def _link_glossary(app, name, source):
    if name != "glossary" and "glossary.md" not in source[0]:
        source[0] += "\n\nTerms are in the [glossary](/glossary.md).\n"
