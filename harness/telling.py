"""What a command says on stderr when it can do nothing: to students in their language, to instructors in English."""

from __future__ import annotations

import re

import click

from harness.cli import main, translator
from harness.i18n import LANGUAGES, Translator
from harness.messages import message
from harness.outcome import Message
from harness.report import as_text


def tell(arguments: list[str], *lines: str | Message | click.ClickException) -> None:
    """Say what is wrong, and then what to do about it.

    Args:
        arguments: the command line; a command with --lang is for students.
        lines: a text is said as it is; an empty one is not.
    """
    words = _words(arguments)
    said = []
    for line in lines:
        part = _misused(line, words.language) if isinstance(line, click.ClickException) else line
        said.append(words.text(as_text(part)) if isinstance(part, Message) else part)
    click.echo("\n".join([f"grade.py: {said[0]}", *filter(None, said[1:])]), err=True)


def _misused(error: click.ClickException, language: str) -> str | Message:
    """A wrong option in words of ours where click, which speaks English, would not be read."""
    if language != "en" and isinstance(error, click.NoSuchOption):
        return message("problem.no-option", option=error.option_name)
    if language != "en" and isinstance(error, click.BadParameter) and error.param is not None:
        return message("problem.bad-value", option=error.param.opts[0])
    return error.format_message()


def _words(arguments: list[str]) -> Translator:
    """The language of a command line. It may be wrong in any way, so click cannot be asked to read it."""
    context = click.Context(main)
    name = arguments[0] if arguments and arguments[0] in main.list_commands(context) else "grade"
    command = main.get_command(context, name)
    if command is None or all(parameter.name != "lang" for parameter in command.params):
        return translator("en")
    asked = re.findall(rf"(?m)^--lang[=\n]({'|'.join(LANGUAGES)})$", "\n".join(arguments))
    return translator(asked[-1] if asked else None)
