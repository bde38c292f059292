"""What is Jupyter's and not Python's in a cell: `%magic`, `!command`, `name?`. It is taken out, line by line.

IPython would do this too, but it is no part of a grader's machine, and what it makes of a `!` line asks for a shell.
Lines stay where they are, so that errors name the right ones.
"""

from __future__ import annotations

import io
import re
import tokenize

MOST_MAGICS = 200  # in one cell; each is looked at together with all that stands before it

# Cell magics whose body is ordinary Python that should still run.
_PLAIN = ("time", "timeit", "capture", "prun", "python", "python3", "pypy")
_CELL = re.compile(r"\s*%%(\w*)[ \t]*(.*)")
_LINE = re.compile(r"(?m)^[ \t]*(?:[%!?]|[\w., \t]+=[ \t]*[%!])|\?[ \t]*$")
_CODE = re.compile(r"(?P<indent>[ \t]*)(?:[%!?].*|(?P<target>[\w., \t]+?)[ \t]*=[ \t]*[%!].*|[%\w.*]+\?{1,2}[ \t]*)")


def without_magics(source: str) -> str:
    """The Python of a cell, in as many lines.

    `x = !command` becomes `x = None`. The body of `%%writefile gpt.py` counts as this cell's code; that of a cell
    magic in another language goes. Magics beyond `MOST_MAGICS` stay, and are errors of syntax then.
    """
    source = source.replace("\r\n", "\n")
    if (cell := _CELL.match(source)) is not None:
        body = source[cell.end() :]
        python_file = cell[1] in ("writefile", "file") and cell[2].strip().strip("\"'").endswith(".py")
        return without_magics(body) if cell[1] in _PLAIN or python_file else ""
    lines = source.split("\n")
    if not any(_LINE.search(line) for line in lines if "%" in line or "!" in line or "?" in line):
        return source
    number = 0
    taken = 0
    while number < len(lines):
        found = _CODE.fullmatch(lines[number])
        if found is not None and taken < MOST_MAGICS and _is_statement_start(lines[:number]):
            taken += 1
            goes_on = lines[number].endswith("\\")
            lines[number] = found["indent"] + (f"{found['target'].strip()} = None" if found["target"] else "pass")
            while goes_on and number + 1 < len(lines):
                number += 1
                goes_on, lines[number] = lines[number].endswith("\\"), ""
        number += 1
    return "\n".join(lines)


def _is_statement_start(before: list[str]) -> bool:
    """Whether a new statement may begin after these lines: no string or bracket is open."""
    if before and before[-1].endswith("\\"):
        return False
    try:
        for _ in tokenize.generate_tokens(io.StringIO("\n".join(before) + "\n").readline):
            pass
    except IndentationError:
        return True
    except (tokenize.TokenError, SyntaxError) as error:
        return "multi-line" not in str(error)
    return True
