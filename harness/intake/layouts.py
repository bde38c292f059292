"""The layouts in which submissions arrive, and how to tell them apart.

Each layout is a function that looks at a `Place` and gives its attempts, or None if the place does not look like it.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import yaml

from harness.course import YEARS
from harness.intake import git
from harness.intake.archives import ARCHIVE_SUFFIXES
from harness.intake.found import Found, Person, Piece
from harness.intake.trees import Child, FolderTree, Tree
from harness.messages import message
from harness.outcome import Message
from harness.problem import Problem
from harness.submission import Budget

METADATA = "submission_metadata.yml"
# Canvas' lib/content_zipper.rb: [name, LATE, id] joined by "_", then the attachment's id and name; anonymous
# assignments have "anon_" and an id of letters and digits, and no name.
_CANVAS = re.compile(
    r"(?:(?!LATE_|anon_)(?P<name>.+?)_)?(?P<late>LATE_)?(?P<id>\d+|anon_[^\W_]+)_"
    r"(?:(?P<attachment>\d+)_(?P<file>.+)|(?:text|link)\.html)"
)
# Moodle's mod/assign: name, participant's number, plugin; a folder by default, or else the file's name follows.
_MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?P<plugin>[a-z]+)_?(?P<file>.*)", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_\d+")
_MAX_NESTING = 50
_WORK = (".py", ".zip", ".ipynb")
_TABLES = (".csv", ".tsv", ".xlsx", ".ods")
_SIDE_FILES = (*_TABLES, ".json", ".toml", ".yml", ".yaml", ".md", ".txt", ".log")


@dataclass
class Place:
    """A folder within the input. `ignored` collects what lies there and is nobody's submission: "name (reason)"."""

    tree: Tree
    folder: str
    ignored: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.children: list[Child] = self.tree.children(self.folder)

    def ignore(self, child: Child, why: str) -> None:
        """List something that is nobody's submission; tables, such as lists of grades, need no word."""
        if child.kind != "file" or not child.name.lower().endswith(_TABLES):
            self.ignored.append(f"{child.name} ({why})")

    def inside(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name

    def piece(self, child: Child, name: str = "") -> Piece:
        return Piece(self.tree.root, self.inside(child.name), name)


def canvas(place: Place) -> list[Found] | None:
    """Canvas: at least half of what lies there is named `doejane_123_456_gpt.py`."""
    matches = {child.name: match for child in place.children if (match := _CANVAS.fullmatch(child.name))}
    if not matches or 2 * len(matches) < len(place.children):
        return None
    by_student: dict[str, list[Child]] = {}
    for child in place.children:
        if child.name in matches and child.kind == "file":
            by_student.setdefault(matches[child.name]["id"], []).append(child)
        else:
            place.ignore(child, "Canvas gives files named like doejane_123_456_gpt.py")
    attempts = []
    for key, children in by_student.items():
        first = matches[children[0].name]
        files = [child for child in children if matches[child.name]["file"]]
        files.sort(key=lambda child: int(matches[child.name]["attachment"]))
        late = any(matches[child.name]["late"] for child in children)
        attempts.append(
            Found(
                key=key,
                source=children[0].name if len(children) == 1 else "_".join(filter(None, (first["name"], key))),
                people=() if key.startswith("anon_") else (Person(first["name"] or "", ids={"canvas": key}),),
                late=late,
                notes=(message("late.no-time", what=children[0].name),) if late else (),
                pieces=tuple(place.piece(child, matches[child.name]["file"]) for child in files),
                problem=None if files else message("intake.online", what=children[0].name),
            )
        )
    return attempts


def moodle(place: Place) -> list[Found] | None:
    """Moodle: something there is named `Jane Doe_123_assignsubmission_file`, whether folder or file."""
    matches = {child.name: match for child in place.children if (match := _MOODLE.fullmatch(child.name))}
    if not matches:
        return None
    by_student: dict[str, list[Child]] = {}
    for child in place.children:
        if child.name in matches and child.kind in ("file", "folder"):
            by_student.setdefault(matches[child.name]["id"], []).append(child)
        else:
            place.ignore(child, "Moodle gives names like Jane Doe_123_assignsubmission_file")
    attempts = []
    for key, children in by_student.items():
        name = unicodedata.normalize("NFC", matches[children[0].name]["name"])
        files = [child for child in children if matches[child.name]["plugin"] == "file"]
        attempts.append(
            Found(
                key=key,
                source=children[0].name if len(children) == 1 else f"{name}_{key}",
                people=(Person(name, ids={"moodle": key}),),
                pieces=tuple(
                    place.piece(child, "" if child.kind == "folder" else matches[child.name]["file"] or child.name)
                    for child in files
                ),
                problem=None if files else message("intake.online", what=children[0].name),
            )
        )
    return attempts


def gradescope(place: Place) -> list[Found] | None:
    """Gradescope: submission_metadata.yml lies there, or at least half are folders named `submission_123`."""
    names = {child.name: child for child in place.children}
    numbered = [child for child in place.children if child.kind == "folder" and _GRADESCOPE.fullmatch(child.name)]
    if METADATA in names:
        metadata = _read_metadata(place)
        del names[METADATA]
    elif numbered and 2 * len(numbered) >= len(place.children):
        metadata = {}
    else:
        return None
    attempts = [_from_metadata(place, name, entry, names.pop(name, None)) for name, entry in metadata.items()]
    for name, child in names.items():
        if child in numbered:
            attempts.append(Found(key=name, source=name, pieces=(place.piece(child),)))
        else:
            place.ignore(child, f"Gradescope gives folders that {METADATA} lists, or named like submission_123")
    return attempts


def _read_metadata(place: Place) -> dict[str, Any]:
    where = f"{METADATA} in {place.tree.root.name}"
    text = place.tree.file(place.inside(METADATA), Budget(METADATA))
    try:
        data = _load_yaml(text)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise Problem(f"{where} cannot be read: {error}", "Download the export again.") from error
    if not isinstance(data, dict):
        raise Problem(f"{where} does not list submissions by name.", "Download the export again.")
    return data


def _load_yaml(text: bytes) -> Any:
    """A YAML document as lists, dicts and texts.

    Made from the parser's events, for three reasons: an id such as 00123 stays what it is, a file that is nested deep
    cannot overrun the stack (yaml.load's C code can), and it takes an eighth of yaml.load's time.
    """
    anchors: dict[str, Any] = {}
    open_: list[tuple[yaml.CollectionStartEvent | None, list[Any]]] = [(None, [])]
    for event in yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
        anchor = getattr(event, "anchor", None)
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            value = event.value
        elif isinstance(event, yaml.CollectionStartEvent):
            open_.append((event, []))
            if len(open_) > _MAX_NESTING:  # libyaml takes time with the square of it
                raise ValueError("it is nested too deep")
            continue
        elif isinstance(event, yaml.CollectionEndEvent):
            start, value = open_.pop()
            anchor = start.anchor if start is not None else None
            if isinstance(start, yaml.MappingStartEvent):
                pairs = zip(value[::2], value[1::2], strict=True)
                value = {key: item for key, item in pairs if isinstance(key, str)}
        elif isinstance(event, yaml.AliasEvent):
            value = anchors.get(str(event.anchor))
        else:
            continue
        if anchor is not None:
            anchors[anchor] = value
        open_[-1][1].append(value)
    return open_[0][1][0] if open_[0][1] else None


def _from_metadata(place: Place, name: str, entry: Any, child: Child | None) -> Found:
    submitters = _get(entry, "submitters")
    people = tuple(
        Person(
            unicodedata.normalize("NFC", _text(item, "name")),
            _text(item, "email"),
            {"gradescope": sid} if (sid := _text(item, "sid")) else {},
        )
        for item in (submitters if isinstance(submitters, list) else [])
    )
    submitted = _time(_text(entry, "created_at"))
    notes = () if submitted else (message("intake.no-time.metadata", what=name, file=METADATA),)
    only = people[0] if len(people) == 1 else Person()
    problem: Message | None = None
    if child is None:
        problem = message("intake.no-files", what=name)
    elif child.kind != "folder":
        problem = message("intake.kind", what=name)
    pieces = (place.piece(child),) if child is not None and problem is None else ()
    key = only.ids.get("gradescope") or only.email or name
    return Found(key, name, people, submitted, pieces=pieces, problem=problem, notes=notes)


def _get(entry: Any, key: str) -> Any:
    """A value of Gradescope's metadata, whose keys are Ruby symbols: `:name`."""
    return entry.get(f":{key}", entry.get(key)) if isinstance(entry, dict) else None


def _text(entry: Any, key: str) -> str:
    value = _get(entry, key)
    return value.strip() if isinstance(value, str) and value.strip() not in ("~", "null") else ""


def _time(text: str) -> datetime.datetime | None:
    """`2026-03-01 22:58:01.123456789 Z` or with an offset. Ruby leaves none out but for UTC."""
    try:
        time = datetime.datetime.fromisoformat(re.sub(r"\s+(?=Z|[+-]\d)", "", text))
    except ValueError:
        return None
    if time.year not in YEARS:
        return None
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def is_work(child: Child) -> bool:
    """Whether it may be a student's whole work, by its kind and name: a folder, .py file, notebook or zip."""
    return child.kind == "folder" or (child.kind == "file" and child.name.lower().endswith(_WORK))


def repos(place: Place) -> list[Found] | None:
    """Cloned repositories: more than half of the folders hold a `.git`. Not in a zip. Other work may lie beside."""
    if not isinstance(place.tree, FolderTree):
        return None
    folders = [child for child in place.children if child.kind == "folder"]
    root = place.tree.root / place.folder
    cloned = sum(git.is_repository(root / child.name) for child in folders)
    if 2 * cloned <= len(folders):
        return None
    loose = []
    for child in place.children:
        if child.kind != "folder" and is_work(child):
            loose.append(_of_child(place, child, message("intake.no-time.no-repository", what=child.name)))
        elif child.kind != "folder":
            place.ignore(child, "neither a repository nor a folder, .py file, notebook or .zip")
    with ThreadPoolExecutor(8) as pool:  # each waits for a process of its own
        times = list(pool.map(git.last_commit, [root / child.name for child in folders]))
    attempts = [
        Found(
            key=unicodedata.normalize("NFC", child.name),
            source=child.name,
            people=(_of_folder(child.name),),
            submitted=None if isinstance(time, Message) else time,
            pieces=(place.piece(child),),
            notes=(time,) if isinstance(time, Message) else (),
        )
        for child, time in zip(folders, times, strict=True)
    ]
    return sorted(attempts + loose, key=lambda found: found.source)


def folders(place: Place) -> list[Found]:
    """One folder, .py file, notebook or zip for each student, named after the student."""
    attempts = []
    for child in place.children:
        stem, _, suffix = child.name.lower().rpartition(".")
        # Of a text, `nova.py.txt` alone says that it was meant to be handed in.
        if child.kind == "file" and stem and f".{suffix}" in _SIDE_FILES and not stem.endswith(_WORK):
            place.ignore(child, "not a folder, .py file, notebook or .zip")
        else:
            attempts.append(_of_child(place, child))
    return attempts


def _of_child(place: Place, child: Child, *notes: Message) -> Found:
    """Something that is named after its student."""
    stem, dot, suffix = child.name.rpartition(".")
    suffix = f".{suffix.lower()}" if dot and stem else ""
    name, pieces = stem if suffix else child.name, (place.piece(child, child.name),)
    problem: Message | None = None
    if child.kind == "folder":
        name, pieces = child.name, (place.piece(child),)
    elif child.kind == "link":
        problem = message("submission.link", file=child.name)
    elif child.kind == "other":
        problem = message("intake.special", what=child.name)
    elif suffix in ARCHIVE_SUFFIXES and suffix != ".zip":
        name = name.removesuffix(".tar")
        problem = message("intake.archive-kind", what=child.name, kind=suffix[1:])
    elif suffix not in _WORK:
        name = name.rpartition(".")[0] if name.lower().endswith(_WORK) else name
        problem = message("intake.kind", what=child.name)
    person = _of_folder(name)
    return Found(person.name, child.name, (person,), pieces=() if problem else pieces, problem=problem, notes=notes)


def _of_folder(name: str) -> Person:
    name = unicodedata.normalize("NFC", name)
    return Person(name, ids={"folder": name})


LAYOUTS: dict[str, Callable[[Place], list[Found] | None]] = {
    "gradescope": gradescope,
    "canvas": canvas,
    "moodle": moodle,
    "repos": repos,
    "folders": folders,
}
