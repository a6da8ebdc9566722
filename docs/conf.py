"""How Sphinx builds the pages, and a list of them for programs that read: llms.txt."""

from pathlib import Path

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
    """Link the glossary from every page, and write llms.txt."""
    app.connect("source-read", _link_glossary)
    app.connect("build-finished", _list_pages)


def _link_glossary(app, name, source):
    if name != "glossary" and "glossary.md" not in source[0]:
        source[0] += "\n\nTerms are in the [glossary](/glossary.md).\n"


def _list_pages(app, error):
    """Write llms.txt: the pages by heading of the menu, each with its Markdown and its first paragraph."""
    if error or app.builder.format != "html":
        return
    lines = [f"# {project}", "", f"> {_first_paragraph(app.env, 'index')}"]
    for menu in app.env.get_doctree("index").findall(lambda node: node.tagname == "toctree"):
        lines += ["", f"## {menu['caption']}", ""]
        for name in menu["includefiles"]:
            title = app.env.titles[name].astext()
            lines.append(f"- [{title}](_sources/{name}.md.txt): {_first_paragraph(app.env, name)}")
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _first_paragraph(env, name):
    """Return the text of a page's first paragraph, on one line."""
    paragraphs = env.get_doctree(name).findall(lambda node: node.tagname == "paragraph")
    return " ".join(next(paragraphs).astext().split())
