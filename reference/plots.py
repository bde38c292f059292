"""Pictures: matplotlib when it is there, one clear line when it is not, and a font that holds the characters."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

FONTS = (  # the usual ones on Linux, Windows and macOS, tried first; after them any font that will do
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Serif CJK SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "SimHei",
    "SimSun",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti TC",
    "STHeiti",
    "Arial Unicode MS",
)


class NoPlots(Exception):
    """A picture cannot be drawn here; the message says what to install."""


def pyplot() -> Any:
    """matplotlib.pyplot, drawing into files only. Raises NoPlots when matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise NoPlots("no picture: matplotlib is not installed (pip install matplotlib)") from error
    return plt


def find_font(text: str) -> str:
    """The family name of an installed font that has every character of `text`.

    Raises NoPlots, which names what to install, when there is none.
    """
    pyplot()
    from matplotlib.font_manager import fontManager

    wanted = {ord(character) for character in text}
    rank = {name: place for place, name in enumerate(FONTS)}
    for entry in sorted(fontManager.ttflist, key=lambda entry: rank.get(entry.name, len(FONTS))):
        if "lastresort" in entry.name.lower().replace(" ", ""):  # it claims everything and draws boxes
            continue
        if _has(entry.fname, wanted):
            return str(entry.name)
    raise NoPlots(
        f"no picture: no installed font has all of {text!r}; install one for Chinese "
        "(Debian, Ubuntu: apt install fonts-noto-cjk; Fedora: dnf install google-noto-sans-cjk-fonts; elsewhere: "
        "Noto Sans CJK), then delete matplotlib's font cache, whose folder matplotlib.get_cachedir() names"
    )


def save_curves(
    path: Path, title: str, curves: Iterable[tuple[str, list[int], list[float]]], floor: float | None = None
) -> None:
    """Draws losses over steps: (label, steps, losses) a curve. Raises NoPlots without matplotlib, OSError."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for label, steps, losses in curves:
        axes.plot(steps, losses, label=label, linewidth=1.5)
    axes.set(title=title, xlabel="step", ylabel="loss (nats a character)")
    axes.set_ylim(bottom=floor)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _has(font_file: str, wanted: set[int]) -> bool:
    from matplotlib.ft2font import FT2Font

    try:
        return wanted <= FT2Font(font_file).get_charmap().keys()
    except (OSError, RuntimeError):  # listed once, since removed or broken
        return False
