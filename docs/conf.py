import ridgemark

project = "ridgemark"
author = "The ridgemark authors"
release = ridgemark.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 2
html_theme = "furo"
html_title = f"ridgemark {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
default_role = "code"
