"""A page as one script of bash, and what each of its steps prints, without what differs from run to run."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))

# Ends each step in the transcript, with the exit code.
MARK = "\x1e"
# A command that prints to the transcript prints as on a terminal; one in a pipe or for a variable does not.
PRELUDE = r"""
trestle() {
    case " $* " in *" -o "* | *" --json "*) command trestle "$@"; return ;; esac
    if [ /dev/stdout -ef transcript ]; then command trestle "$@" -o table; else command trestle "$@"; fi
}
"""
# What differs from run to run, and what replaces it.
VARIABLE = [
    (r"\d{4}-\d\d-\d\dT\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?Z", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\b[\d.,]+ (B|[KMG]iB)(?![\w/])", "SIZE"),
    (r"\bin [\d.]+ m?s\b", "in DURATION"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\bbytes=[\d,]+", "bytes=SIZE"),
    (r"(entities_per_second)\s[\d.]+", r"\1 RATE"),
    (r"[─┬┴┼═╪╤╧]+", "─"),
    (r"[ \t]+", " "),
]


def blocks(page):
    """The code blocks of a page, with their languages."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def console(text):
    """The commands of a block, each with what it prints."""
    steps = []
    is_open = False
    for line in text.splitlines(keepends=True):
        if line.startswith("$ ") and not is_open:
            steps.append([line[2:], ""])
        else:
            steps[-1][0 if is_open else 1] += line
        command = steps[-1][0]
        is_open = not steps[-1][1] and (command.endswith("\\\n") or command.count("'") % 2 == 1)
    return [tuple(step) for step in steps]


def program(language, number, text):
    """The commands that run a program of a page, or none where the machine lacks its language."""
    quoted = shlex.quote(text)
    match language:
        case "python":
            return f"printf %s {quoted} >program{number}.py && {shlex.quote(sys.executable)} program{number}.py"
        case "js":
            run = f"printf %s {quoted} >program{number}.js && NODE_PATH=$GUIDES_NODE node program{number}.js"
            return run if "GUIDES_NODE" in os.environ else None
        case "go":
            folder = f'"$GUIDES_GO/page{number}"'
            run = f"mkdir -p {folder} && printf %s {quoted} >{folder}/main.go && (cd {folder} && go run .)"
            return run if "GUIDES_GO" in os.environ else None


def steps(page):
    """The steps of a page: commands of bash, and what they print, which is None where the page does not show it."""
    found = []
    parts = blocks(page)
    for number, (language, text) in enumerate(parts):
        following = parts[number + 1] if number + 1 < len(parts) else ("", "")
        if language == "console":
            found += console(text)
        elif language == "sh":
            found.append((text, None))
        elif language in ("python", "js", "go"):
            assert following[0] == "text", f"the output of a program is missing: {text}"
            run = program(language, number, text)
            if run is None:
                print(f"SKIPPED: a program in {language}")
            else:
                found.append((run, following[1]))
    return found


def stable(text):
    """The lines of a text without what differs from run to run."""
    for pattern, replacement in VARIABLE:
        text = re.sub(pattern, replacement, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def run(commands, folder, environment):
    """What each of the commands prints, and its exit code. They run in one shell, one after the other."""
    script = PRELUDE + "".join(f"{command}\nprintf '{MARK}%s\\n' $?\n" for command in commands)
    with (folder / "transcript").open("wb") as transcript:
        subprocess.run(
            ["bash", "-o", "pipefail", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=transcript,
            stderr=subprocess.STDOUT,
            timeout=150,
            check=False,
        )
    text = (folder / "transcript").read_text(encoding="utf-8")
    return [(printed, int(code)) for printed, code in re.findall(rf"(.*?){MARK}(\d+)\n", text, re.DOTALL)]
