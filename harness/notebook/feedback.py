"""A student's notebook with the results under the cells concerned, as one page of HTML.

The page is made from the sources of the cells alone; outputs, attachments and metadata are left out. What the student
wrote can do nothing in it: nbconvert cleans the Markdown, and the page forbids scripts and anything from elsewhere.
"""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from harness import files
from harness.i18n import Translator
from harness.messages import message
from harness.notebook import cells
from harness.notebook.magics import without_magics
from harness.problem import Problem
from harness.report import ExerciseResult, Report, as_text, for_student

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# What Markdown makes. Nothing that runs, loads or is styled by the student.
_TAGS = ["a", "b", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6",
         "hr", "i", "li", "ol", "p", "pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr",
         "ul"]  # fmt: skip
_ATTRIBUTES = {"*": ["class"], "a": ["href", "title"]}
_BLOCK = """\
<section style="border-left: 4px solid {{ '#2e7d32' if exercise.earned == exercise.possible else '#c62828' }};
 padding: 0.5em 1em; margin: 1em 0; background: #f7f7f7; color: #111">
<h3>{{ words.title(exercise.id, exercise.title) }}: {{ '%g' % exercise.earned }} / {{ '%g' % exercise.possible }}</h3>
<ul>
{%- for check in exercise.checks %}
<li><strong>{{ words.title(check.id, check.title) }}</strong>:
 {% if check.status != 'passed' %}{{ words.ui('ui.status.' ~ check.status.value) }}, {% endif -%}
 {{ '%g' % check.points }} / {{ '%g' % check.possible }}
{%- if check.status != 'passed' %}
{%- if check.hint and not check.caused_by %}<p>{{ words.text(check.hint) }}</p>{% endif %}
{%- if check.message %}<p>{{ words.text(check.message) }}</p>{% endif %}
{%- if check.evidence %}<pre>
{%- for name, value in check.evidence.compared %}
{{ words.ui('ui.' ~ name) }}  {{ value }}{% endfor %}</pre>{% endif %}
{%- for frame in check.trace[-1:] %}<pre>{{ words.ui('ui.frame', file=frame.file, line=frame.line) }}
{{ frame.source }}</pre>{% endfor %}
{%- if check.reproduce and check.status == 'failed' %}<p>{{ words.ui('ui.see-it.notebook') }}</p>
<pre>{{ words.code(check.reproduce) }}</pre>{% endif %}
{%- endif %}</li>
{%- endfor %}
</ul>
</section>"""


def write(path: Path, notebook: bytes, report: Report, words: Translator, root: Path) -> None:
    """Write the page of a notebook.

    Args:
        path: the file to write.
        notebook: the submitted file.
        report: its result.
        words: the language of the results.
        root: of the course.

    Raises:
        Problem: the notebook cannot be read, or the file cannot be written.
    """
    html = page(notebook, report, names_asked(root / "student_template"), words)
    try:
        files.write_atomically(path, html.encode("utf-8", "replace"))
    except OSError as error:
        raise Problem(f"{path} could not be written: {error.strerror}.", "Name another with --feedback.") from error


def page(notebook: bytes, report: Report, asked: Mapping[str, Sequence[str]], words: Translator) -> str:
    """The page, self-contained.

    Args:
        notebook: the submitted file.
        report: its result; hidden checks show what a student may see.
        asked: exercise -> the names that the student is to define for it.
        words: the language of the results.

    Raises:
        Problem: the notebook cannot be read.
    """
    import nbconvert
    from nbconvert.preprocessors.sanitize import SanitizeHTML
    from nbformat import v4
    from pygments.formatters import HtmlFormatter  # nbconvert's cells are coloured by it

    try:
        cells.read_cells(notebook)
        document = msgspec.json.decode(notebook.removeprefix(b"\xef\xbb\xbf"), type=cells.Document)
    except cells.BadNotebook as error:
        said = words.text(as_text(message(f"notebook.{error.reason}", file=report.submission.name)))
        raise Problem(f"There is no page of this notebook. {said}") from error
    block = jinja2.Environment(autoescape=True).from_string(_BLOCK)
    token = secrets.token_hex(16)  # a mark that the student could not know
    shown = for_student(report).exercises
    places = _places(document.cells, shown, asked)
    content: list[Any] = []
    for place, cell in enumerate(document.cells):
        make = v4.new_code_cell if cell.cell_type == "code" else v4.new_markdown_cell
        source = cell.text if cell.cell_type in ("code", "markdown") else ""
        content.append(make(source, id=f"c{place}"))  # type: ignore[no-untyped-call]
        content += [_mark(v4, token, exercise) for exercise in shown if places[exercise.id] == place]
    content += [_mark(v4, token, exercise) for exercise in shown if places[exercise.id] is None]
    exporter = nbconvert.HTMLExporter(sanitize_html=True, template_name="basic")  # type: ignore[no-untyped-call]
    cleaner = SanitizeHTML(tags=_TAGS, attributes=_ATTRIBUTES)  # type: ignore[no-untyped-call]
    # Its own filter takes Markdown's headings and paragraphs for something to be escaped.
    exporter.register_filter("clean_html", cleaner.sanitize_html_tags)  # type: ignore[no-untyped-call]
    body, _ = exporter.from_notebook_node(v4.new_notebook(cells=content))  # type: ignore[no-untyped-call]
    for exercise in shown:
        told = block.render(exercise=exercise, words=words)
        body = body.replace(f"<p>{token}-{exercise.id}</p>", told)
    title = jinja2.Environment(autoescape=True).from_string("{{ t }}").render(t=report.submission.name)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    colours = f"pre {{ white-space: pre-wrap }}\n{HtmlFormatter().get_style_defs('.highlight')}"
    head = f'<meta charset="utf-8">{policy}<title>{title}</title><style>{colours}</style>'
    return f"<!doctype html>\n<html><head>{head}</head>\n<body>\n{body}\n</body></html>\n"


def _mark(v4: Any, token: str, exercise: ExerciseResult) -> Any:
    return v4.new_markdown_cell(f"{token}-{exercise.id}", id=f"r-{exercise.id}")


def _places(
    found: Sequence[cells.Cell], exercises: Sequence[ExerciseResult], asked: Mapping[str, Sequence[str]]
) -> dict[str, int | None]:
    """Exercise -> the last cell that defines something asked for in it; None where no cell does."""
    places: dict[str, int | None] = {exercise.id: None for exercise in exercises}
    for place, cell in enumerate(found):
        if cell.cell_type == "code":
            names = cells.names_defined(without_magics(cell.text))
            for exercise in exercises:
                if names & set(asked.get(exercise.id, ())):
                    places[exercise.id] = place
    return places


def names_asked(template: Path) -> dict[str, list[str]]:
    """Exercise -> the top-level names in which the template's files say TODO for it."""
    asked: dict[str, list[str]] = {}
    for path in sorted(template.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                for exercise in re.findall(r"# TODO \(([\w-]+)\)", "\n".join(lines[node.lineno - 1 : node.end_lineno])):
                    asked.setdefault(exercise, []).append(node.name)
    return asked
