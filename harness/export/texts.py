"""Text made safe for whatever reads an export: importers, spreadsheets, XML parsers.

Names and messages come from rosters and submissions, so they are data: nothing in them may start a formula, end a row
or end a file.
"""

from __future__ import annotations

import re

# What is neither printable nor a line break: C0 and C1 controls, lone surrogates, U+FFFE and U+FFFF (not allowed in
# XML), and the marks that make following text run backwards. Right-to-left letters need none of them.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
_LINE_BREAK = re.compile("\r\n|[\r\n\u2028\u2029\x85]")
# Spreadsheets take a cell that starts with one of these for a formula, East Asian editions the wide forms as well.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
_BACKSLASH_LIKE = "\u2216"


def plain(text: str) -> str:
    """Without control characters; line breaks become `\\n`, tabs a space."""
    if text.replace("\n", "").isprintable():  # nearly always, and it is much faster to see
        return text
    return _UNWANTED.sub("", _LINE_BREAK.sub("\n", text).replace("\t", " "))


def one_line(text: str) -> str:
    """`plain`, on one line: line breaks and runs of blanks become one space."""
    return " ".join(plain(text).split())


def cell(text: str) -> str:
    """`one_line`, with an apostrophe before what a spreadsheet would take for a formula."""
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def starts_formula(text: str) -> bool:
    """Whether a spreadsheet would run it. A leading `-` alone is no reason: it begins numbers."""
    return text.startswith(tuple(sign for sign in _FORMULA if sign != "-"))


def moodle(text: str) -> str:
    """`cell` for Moodle, whose CSV reader lets a backslash before a quote swallow the rest of the row and the next."""
    return cell(text).replace("\\", _BACKSLASH_LIKE)


def file_name(text: str) -> str:
    """Fit to be one part of a path on any system; never empty, never a dot alone."""
    name = re.sub(r'[/\\:*?"<>|]', " ", one_line(text)).strip(". ")
    return " ".join(name.split())[:100] or "unnamed"
