"""Every sentence that the engine says to a student, by id. Checks bring their own titles and hints.

Ids are what reports store and translations key on: a sentence may be reworded, its id stays. After a change,
`python grade.py translations` brings the catalogues of the other languages up to date.
"""

from __future__ import annotations

from harness.outcome import Message, Scalar

ENGLISH = {
    # What stopped a check.
    "not-started": "{function} in {file}, line {line} is not written yet.",
    "not-started.bare": "{what} is not written yet.",
    "missing.module": "There is no {file} in this submission.",
    "missing.name": "{owner} has no {name}. Was it renamed or deleted? The graders look for this name.",
    "parameters.missing": "{what} has no parameter {name}; it has: {found}. The docstring fixes the names of the "
    "layers, so that known weights can be put in.",
    "parameters.extra": "{what} has a parameter {name} that the exercise does not ask for.",
    "parameters.shape": "The parameter {name} of {what} has shape {own}; it should be {wanted}.",
    "parameters.not-a-module": "{what} is a {name}, not an nn.Module.",
    "error.syntax": "Python cannot read {file}, line {line}: {text}",
    "error.import": "{file}, line {line}: {text}. Only torch, numpy and Python's own library are there when your work "
    "is graded.",
    "error.raised": "{what} raised {kind}: {text} ({file}, line {line})",
    "error.raised.bare": "{what} raised {kind}: {text}",
    "timeout.import": "Importing {name}.py did not end within {seconds} seconds. Is there a loop or a training run at "
    "the top level of the file?",
    "timeout.call": "This call did not end within {seconds} seconds. Is there a loop that never ends?",
    "timeout.submission": "This submission used up its {seconds} seconds of computing time.",
    "blocked.scratch": "The code wrote more than {mebibytes} MiB or {files} files.",
    "blocked.refused": "{what} tried something that a submission may not do ({kind}: {text}). While it is graded, code "
    "may read its own files and Python's libraries and write into the folder it runs in; other files, other programs "
    "and the network are closed to it.",
    "blocked.file": "{what} wrote a file larger than a submission may have.",
    "out-of-memory": "{what} asked for more memory than a submission may have. Look at the shapes that are built "
    "there.",
    "crashed.import": "The Python process ended while {name}.py was imported ({ending}).",
    "crashed.during": "The Python process ended during {what} ({ending}).",
    "crashed.call": "The Python process ended during this call ({ending}).",
    "blocked.protocol": "The submission wrote to the channel that carries its answers: {error}.",
    "answer.not-data": "{what} returned {got}, which cannot be compared with the expected value.",
    "check.assertion": "{text}",
    "grader-error": "This check broke down ({kind}). That is the grader's fault, not yours; it costs no points.",
    "grader-error.lost": "This check did not run to its end. That is the grader's fault, not yours; it costs you "
    "nothing.",
    "follow-through": "“{check}” fails only because of “{cause}”: its points are given back.",
    # What a comparison saw.
    "expect.tensor": "{what} should be a tensor; it is {actual}.",
    "expect.real": "{what} should hold real numbers; its dtype is {actual}.",
    "expect.shape": "{what} has shape {actual}; it should be {expected}.",
    "expect.finite": "{what} contains {actual} at {where}.",
    "expect.dtype": "{what} has dtype {actual}; it should be {expected}.",
    "expect.close": "{what} differs from the expected values, first at {where}.",
    "expect.number": "{what} should be a number; it is {actual}.",
    "expect.real-number": "{what} should be a finite number; it is {actual}.",
    "expect.handle": "{what} should be an object to work with; it is {actual}.",
    "expect.items": "{what} should be a tuple or a list of {length}; it is {actual}.",
    "expect.number-close": "{what} is {actual}; it should be {expected}.",
    "expect.equal": "{what} is {actual}; it should be {expected}.",
    "expect.same": "There should be no difference here, but there is one, first at {where}: {what}.",
    "expect.on-the-way": "This check is about something else, but what it needs for that is wrong already. {check} "
    "judges it: look there first.",
    "expect.varies": "There should be a difference here, but there is none: {what}.",
    "expect.raises": "{what} should raise {expected}; it returned {actual}.",
    "expect.raises-kind": "{what} should raise {expected}; it raised {actual}.",
    "expect.raises-text": "The {kind} of {what} should name the numbers concerned: {expected}.",
    # What the sheet of the quiz says.
    "quiz.no-sheet": "There is no {file} in this submission: copy it from the template and write your answers into it.",
    "quiz.too-big": "{file} is larger than {limit} KiB; a sheet of answers is not.",
    "quiz.not-toml": "{file} cannot be read: {problem}. Every answer stands between quotes, as in the template.",
    "quiz.blank": "{question} has no answer yet in {file}.",
    "quiz.no-choice": "The answer to {question} is {actual}; it should be one of the letters {letters}.",
    "quiz.no-number": "The answer to {question} is {actual}; it should be a number.",
    "quiz.no-text": "The answer to {question} is {actual}; it should be a text in quotes.",
    "quiz.wrong": "{actual} is not the right answer to {question}.",
    "quiz.pending": "A person will read this answer.",
    # What is odd about the files.
    "submission.nothing": "None of the files of this course is here: {files}.",
    "submission.folder": "{file} is a folder; it should be a file.",
    "submission.link": "{file} is a link; links are not followed.",
    "submission.name": "The name of {file} is not UTF-8 text, so the file was left out. Give it another name.",
    "submission.encoding": "{file} is not saved as UTF-8 text ({problem}). Open it in your editor and save it with the "
    "encoding UTF-8.",
    # About notebooks.
    "notebook.timeout": "Cell {cell} did not end within {seconds} seconds, so it was left out when the others were run "
    "again. Is there a loop that never ends, or a training run?",
    "notebook.crashed": "The Python process ended during cell {cell} ({ending}), so that cell was left out when the "
    "others were run again.",
    "notebook.broken": "{kind} ({file}, line {line}): {text}. The cell broke there, and {what} needs what it was to "
    "define.",
    "notebook.empty": "{file} is empty. Save the notebook and hand it in again.",
    "notebook.damaged": "{file} is damaged, or its end is missing: it is not valid JSON. Save or download the notebook "
    "again.",
    "notebook.no-notebook": "{file} is not a notebook, although its name says so. In Jupyter, choose Save; in Colab, "
    "File > Download > Download .ipynb.",
    "notebook.old": "{file} is of the old format 3. Open it in Jupyter and save it: that makes a notebook of format 4.",
    "notebook.new": "{file} is of a newer format than 4, which is not known here.",
    "notebook.language": "{file} is not a notebook for Python.",
    "notebook.too-large": "{file} holds more code than any course asks for.",
    "notebook.too-big": "{file} is larger than {limit} MiB; most of that must be output. Clear the outputs of all "
    "cells, save the notebook and hand it in again.",
    "notebook.files-count": "{files} were graded, {notebook} was not: where one of the course's .py files has been "
    "worked on, the .py files count. To have the notebook graded, hand it in alone.",
    "notebook.notebook-counts": "{notebook} was graded: the course's .py files beside it are as they were handed out.",
    "notebook.several": "There are several notebooks; {notebook} was graded. To have another graded, hand it in alone.",
    # What is seen when a submission is packed.
    "pack.missing": "{file} is missing.",
    "pack.no-bonus": "{file} is not there; only bonus exercises ask for it.",
    "pack.no-answers": "{file} is not there, so the quiz is not answered.",
    "pack.not-answered": "{file} is as it was handed out: the quiz is not answered.",
    "pack.handed-out": "Not packed, because the course has it: {files}.",
    "pack.not-written": "Not written yet: {function} in {file}.",
    "pack.unreadable": "Python cannot read {file}.",
    "pack.unreadable.line": "Python cannot read {file}, line {line}.",
    # What could not be read of what was handed in.
    "intake.missing": "{what} is not there any more.",
    "intake.unreadable": "{what} cannot be read: {problem}.",
    "intake.too-many": "{what} holds more than {limit} files.",
    "intake.too-big": "{what} holds more than {limit} MiB.",
    "intake.bomb": "{file} in {what} grows to more than {ratio} times its size when it is unpacked. No file of a "
    "course does that.",
    "intake.empty": "{what} is empty.",
    "intake.not-zip": "{what} is not a zip archive, or its end is missing. Pack it again, and use that one.",
    "intake.directory": "The table of contents of {what} is larger than {limit} KiB.",
    "intake.corrupt-file": "{file} in {what} is damaged ({problem}). Pack it again, and hand that in.",
    "intake.encrypted": "{file} in {what} is locked with a password. Pack it again without one.",
    "intake.method": "{file} in {what} is compressed in a way that is not read here. Pack it as an ordinary zip.",
    "intake.archive-kind": "{what} is a {kind} archive; of archives, only zip is read. Pack it again as a zip.",
    "intake.kind": "{what} is not something that can be graded: a folder, a .py file, a notebook or a .zip.",
    "intake.special": "{what} is neither a file nor a folder.",
    "intake.online": "{what} is text typed into the learning platform, not a file.",
    "intake.no-files": "The platform lists {what}, but no file of it is in the export.",
    # What was left out of it, or is odd about it.
    "intake.name": "{file} was left out: its name is not a place inside the submission, or cannot be a file's name.",
    "intake.special-entry": "{file} was left out: it is neither a file nor a folder.",
    "intake.duplicate": "{file} is there more than once; the last one counts.",
    "intake.same-name": "{file} and {kept} have the same name on some computers; {file} was left out.",
    "intake.inside-file": "{file} was left out: {kept} is a file, so it cannot also be a folder.",
    "intake.nested": "{file} is an archive inside the submission; it was not opened.",
    "intake.renamed": "{file} was read as {name}.",
    "intake.no-time.metadata": "When {what} was handed in is not known: {file} does not say.",
    "intake.no-time.no-repository": "When {what} was handed in is not known: it is not a repository.",
    "intake.no-time.git-folder": "When {what} was handed in is not known: .git is not a folder.",
    "intake.no-time.git-missing": "When {what} was handed in is not known: git is not installed.",
    "intake.no-time.git-silent": "When {what} was handed in is not known: git did not answer.",
    "intake.no-time.no-commit": "When {what} was handed in is not known: it has no commit that can be read.",
    "intake.no-time.large-commit": "When {what} was handed in is not known: its last commit alone is larger than "
    "{limit} KiB.",
    "intake.no-time.undated": "When {what} was handed in is not known: its last commit has no time.",
    "intake.no-time.range": "When {what} was handed in is not known: the time of its last commit is out of range.",
    # What a batch says of a result.
    "batch.nothing": "Nothing was handed in.",
    "batch.judge-died": "The judging process ended while it worked on this submission, and did so again when it was "
    "judged alone. A person has to look; no points are decided.",
    "marks.by-hand": "Marked by hand: {points} points instead of {earned}.",
    "marks.by-hand-comment": "Marked by hand: {points} points instead of {earned}. {comment}",
    "marks.unfit": "A mark by hand ({points} points for {where}) does not fit the checks any more and does not count. "
    "A person will look at it.",
    # Points for lateness.
    "late.no-time": "{what} was handed in late, but its layout does not say when; no points were taken off.",
    "late.percent": "Handed in {late} after the due time: {rate} % of the possible points for each day begun, "
    "{days} in all, at most {cap} %.",
    "late.points": "Handed in {late} after the due time: {rate} points for each day begun, {days} in all, "
    "at most {cap} points.",
    # Why a command of a student's could do nothing, and what to do about it.
    "problem.no-path": "There is no {path}.",
    "problem.unreadable": "{path} could not be read: {problem}.",
    "problem.not-py": "{path} is not a .py file.",
    "problem.special": "{path} is neither a folder nor a file.",
    "problem.give-work": "Give the folder (or the .py file) that holds your work.",
    "problem.give-any": "Give a folder, one .py file, a notebook or a .zip.",
    "problem.whole-disk": "Is this the folder of your work? Give the folder that holds gpt.py and the other files of "
    "the course.",
    "problem.no-exercise": "There is no exercise {name}.",
    "problem.empty-exercise": "--exercise names no exercise.",
    "problem.exercises": "This course has: {exercises}.",
    "problem.no-notebook": "--feedback is for notebooks, and none is graded here.",
    "problem.no-notebook.help": "Give the path of the notebook.",
    "problem.seed": "This course holds the expected values of its own inputs only.",
    "problem.seed.help": "Leave --seed away.",
    "problem.recording": "{file} is damaged: {problem}",
    "problem.recording.help": "Unpack the course's zip again.",
    "problem.unwritten": "{path} could not be written: {problem}.",
    "problem.unwritten.out": "Name another file with --out.",
    "problem.report-unwritten": "The report could not be written to {path}: {problem}.",
    "problem.report-unwritten.help": "Name another place with --json FILE.",
    "problem.report-unreadable": "{path} cannot be read: {problem}.",
    "problem.report-unreadable.help": "Give the report that grading wrote.",
    "problem.report-version": "{path} is not a report of this version: {problem}",
    "problem.report-version.help": "Grade the work again.",
    "problem.report-newer": "The report has schema version {version}; this program reads versions up to {newest}.",
    "problem.report-newer.help": "Use a newer headcheck to read it.",
    "problem.report-unknown": "The report has schema version {version}, which this program does not know.",
    "problem.report-unknown.help": "Was the file edited? Grade the submission again.",
    "problem.no-option": "There is no option {option}.",
    "problem.bad-value": "{option} does not take that value.",
    "problem.usage.help": "`python grade.py grade --help` shows what can be asked.",
    "problem.stopped": "stopped.",
}

# What the terminal says around all that.
INTERFACE = {
    "ui.status.failed": "failed",
    "ui.status.not_started": "not started",
    "ui.status.missing": "missing",
    "ui.status.error": "error",
    "ui.status.timeout": "time-out",
    "ui.status.out_of_memory": "out of memory",
    "ui.status.crashed": "crashed",
    "ui.status.blocked": "blocked",
    "ui.status.pending": "waits for a person",
    "ui.status.grader_error": "grader at fault",
    "ui.note": "Note: {text}",
    "ui.all-checks": "all {count} checks",
    "ui.expected": "expected",
    "ui.actual": "actual",
    "ui.difference": "largest difference {error}, allowed {tolerance}",
    "ui.frame": "{file}, line {line}",
    "ui.frame.function": "{file}, line {line}, in {function}",
    "ui.see-it": "See it yourself, at a Python prompt in the folder of your work:",
    "ui.see-it.notebook": "See it yourself, in a new cell at the end of your notebook:",
    "ui.same-behind": "The same is behind:",
    "ui.same-reason.one": "1 other check fails for the same reason.",
    "ui.same-reason.many": "{count} other checks fail for the same reason.",
    "ui.quoted": "“{text}”",
    "ui.and": " and ",
    "ui.follows.one": "1 check here fails because of {causes}; mend that first.",
    "ui.follows.many": "{count} checks here fail because of {causes}; mend that first.",
    "ui.printed": "Printed during “{title}”:",
    "ui.isolation": "Isolation: {isolation}",
    "ui.isolation.less": "Isolation: {isolation} (`python grade.py doctor` says what this machine offers)",
    "ui.told-in-full": "The first {count} are told in full; -v tells all.",
    "ui.score": "Score {earned} / {possible}",
    "ui.score.bonus": "bonus {earned} / {possible}",
    "ui.bonus": "{title} (bonus)",
    "ui.undecided": "({points} points not decided yet)",
    "ui.next": "Next:",
    "ui.next.write": "write {function} in {file}, line {line}.",
    "ui.next.look": "look at “{title}”.",
    "ui.loading": "Loading PyTorch ...",
    "ui.report": "Report: {file}",
    "ui.pack.wrote": "Wrote {file}: {names}",
    "ui.pack.nothing": "There is nothing to hand in at {path}.",
    "ui.pack.nothing.help": "The course asks for {files}.",
    "ui.pack.help": "Mend that first, or pack it as it is with --anyway.",
    "ui.pack.differs": "{file} does not read back as what was packed.",
    "ui.pack.differs.help": "Rename files whose names differ by case alone.",
    "ui.review": "A grader broke down; the report is marked for review.",
    "ui.review.help": "Run again with -v and send the report to your instructor.",
}


def message(identity: str, /, **params: Scalar) -> Message:
    """The sentence of that id, to be filled in with `params`.

    Raises:
        KeyError: there is no such id.
    """
    return Message(identity, ENGLISH[identity], dict(params))
