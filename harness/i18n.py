"""Which language a person reads, and every text in it: gettext catalogues, keyed by the ids that reports store.

English stands in the sources; `ja` and `zh` (simplified) in catalogues that `python grade.py translations` makes. What
a catalogue lacks is shown in English, as it was stored.
"""

from __future__ import annotations

import gettext
import io
import locale
import tokenize
from collections.abc import Mapping
from pathlib import Path

from harness.course import ROOT, course_root
from harness.messages import INTERFACE
from harness.outcome import Scalar
from harness.report import Text

LANGUAGES = ("en", "ja", "zh")
# Domain -> where its catalogues are, as <language>/LC_MESSAGES/<domain>.mo.
CATALOGUES = {
    "harness": Path(__file__).resolve().parent / "locale",  # the engine's sentences
    "course": ROOT / "graders" / "locale",  # those of the exercises
}
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides, as POSIX has it
_NAMES = {"japanese": "ja", "chinese": "zh", "english": "en"}  # as Windows calls them


class Translator:
    """Every text in one language.

    Args:
        language: one of `LANGUAGES`.
        root: the folder of the course whose texts are meant; by default as `course_root` says.
    """

    def __init__(self, language: str = "en", root: Path | None = None) -> None:
        self.language = language
        root = root or course_root()
        folders = CATALOGUES if root == ROOT else {**CATALOGUES, "course": root / "graders" / "locale"}
        self._catalogues = [
            gettext.translation(domain, folder, [language], fallback=True)
            for domain, folder in folders.items()
            if language != "en"
        ]

    def text(self, said: Text) -> str:
        """A sentence of a report; the stored English one where there is no translation, or it does not fit.

        A parameter that is the id of a check is shown as its title.
        """
        params = {name: self.title(value, value) if isinstance(value, str) else value
                  for name, value in said.params.items()}  # fmt: skip
        return self._filled(said.id, params) or said.text

    def title(self, owner: str, english: str) -> str:
        """The title of a check, an exercise or the course, by its id."""
        return self._filled(f"{owner}.title", {}) or english

    def code(self, source: str) -> str:
        """Lines of Python with their comments translated; a comment is its own id. What is no Python stays as it is."""
        lines = source.split("\n")
        for comment, row, column in comments(source):
            translated = self._filled(comment, {})
            if translated:
                lines[row - 1] = lines[row - 1][:column] + translated
        return "\n".join(lines)

    def ui(self, id: str, /, **params: Scalar) -> str:
        """A word or sentence of the interface.

        Raises:
            KeyError: there is no such id.
        """
        return self._filled(id, params) or INTERFACE[id].format(**params)

    def _filled(self, id: str, params: Mapping[str, Scalar]) -> str:
        """The translation with its parameters, or "" if there is none."""
        for catalogue in self._catalogues:
            found = catalogue.gettext(id)
            if found != id:
                try:
                    return found.format(**params) if params else found
                except (KeyError, IndexError, ValueError):  # a report of a version with other parameters
                    return ""
        return ""


def comments(source: str) -> list[tuple[str, int, int]]:
    """The comments in Python code, `#` included, with line (from 1) and column (from 0); none if it is no code."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [(token.string, *token.start) for token in tokens if token.type == tokenize.COMMENT]


def pick_language(option: str | None, environ: Mapping[str, str]) -> str:
    """The language asked for, else that of the locale, else English.

    Args:
        option: what `--lang` says, one of `LANGUAGES`.
        environ: the environment; where it names no locale, the system does (`locale.getlocale`, on Windows).
    """
    if option is not None:
        return option
    name = next((environ[variable] for variable in _VARIABLES if environ.get(variable)), None)
    if name is None:
        name = locale.getlocale()[0] or ""
    words = name.lower().replace("-", "_").replace(".", "_").replace("@", "_").replace(" ", "_").split("_")
    language = _NAMES.get(words[0], words[0])
    return language if language in LANGUAGES else "en"
