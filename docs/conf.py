# The site: pages in Markdown, the reference from the headers. ./run.sh docs builds it.

import re
from pathlib import Path

from docutils.nodes import section
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

root = Path(__file__).resolve().parent.parent

project = "xgrad"
copyright = "the xgrad developers"
release = next(
    line.split()[1] for line in (root / "CMakeLists.txt").read_text().splitlines() if line.startswith("  VERSION ")
)
version = release

extensions = ["breathe", "myst_parser", "sphinx.ext.graphviz", "sphinx_copybutton"]
exclude_patterns = ["snippets", "transcripts"]
highlight_language = "none"
smartquotes = False
primary_domain = "cpp"

myst_heading_anchors = 3

breathe_projects = {"xgrad": str(root / "build/docs/doxygen/xml")}
breathe_default_project = "xgrad"
breathe_show_include = False

graphviz_output_format = "svg"
graphviz_dot_args = ["-Nfontname=sans-serif", "-Efontname=sans-serif", "-Nfontsize=11", "-Efontsize=10"]

copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"xgrad {release}"
html_static_path = ["_static"]
html_css_files = ["xgrad.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}


class Headers(SphinxDirective):
    """``.. headers:: ops`` is the reference of every header in a folder: a new one needs no entry here."""

    required_arguments = 1

    def run(self):
        text = []
        for header in sorted((root / self.arguments[0]).rglob("*.hpp")):
            if "node_modules" in header.parts:
                continue
            self.env.note_dependency(str(header))
            name = header.relative_to(root).as_posix()
            group = name.removesuffix(".hpp").replace("/", "_")
            if not declares_something(group):
                continue
            text += [name, "-" * len(name), "", *introduction(header)]
            text += [f".. doxygengroup:: {group}", "   :content-only:", "   :members:", "   :undoc-members:", ""]
        parent = section()
        parent.document = self.state.document
        nested_parse_with_titles(self.state, StringList(text, source=self.arguments[0]), parent)
        return parent.children


def declares_something(group):
    """Whether Doxygen found anything public there: a header of details alone has no entry."""
    xml = root / "build/docs/doxygen/xml" / f"group__{group.replace('_', '__')}.xml"
    text = xml.read_text() if xml.exists() else ""
    return "<innerclass" in text or "<sectiondef" in text


def introduction(header):
    """The comment at the head of a header as reStructuredText; what is indented in it is code."""
    head = header.read_text().split("namespace xgrad", 1)[0]
    text = []
    for block in re.findall(r"^(?://.*\n)+(?=\n)", head, re.MULTILINE):
        for line in block.splitlines():
            line = line[2:].removeprefix(" ")
            is_code = line.startswith("  ")
            if is_code != bool(text and text[-1].startswith("  ")):
                text += ["", "::", ""] if is_code else [""]
            text.append(line if is_code else re.sub(r"([*`|_\\])", r"\\\1", line))
        text.append("")
    return text


def setup(app):
    app.add_directive("headers", Headers)
