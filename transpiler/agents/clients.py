"""Who writes: a model behind an endpoint, any program, a file of recorded answers, or a person.

    openai:MODEL      any OpenAI-compatible endpoint (OPENAI_API_KEY, OPENAI_BASE_URL)
    anthropic:MODEL   Anthropic's (ANTHROPIC_API_KEY)
    command:PROGRAM   a program that reads the question and prints a reply, see :mod:`transpiler.agents.verdicts`
    recorded:FILE     answers by the digest of their task, in order
    (none)            files: tasks are written, and answers read where somebody has put them

Keys come from the environment alone. They are never written: what a client says is stripped of them first.
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Literal, Protocol

from pydantic import ValidationError

from transpiler.agents import tokens
from transpiler.agents.prompt import Prompt
from transpiler.agents.task import Answer
from transpiler.agents.verdicts import MalformedError, Reply, from_text
from transpiler.diagnostics import error
from transpiler.spec import Model

MAX_REPLY_BYTES = 64_000
_GRACE = 5.0
_KEYS = re.compile(r"(?:API_?KEY|TOKEN|SECRET)$")
_SECRET = re.compile(r"\b(?:sk|pk|key)-[\w-]{8,}")


class ClientReply(Model):
    """What a client said to one question: a reply, or text that is none (``malformed`` says why), and what it took.

    ``estimated``: the client doesn't say how many tokens it used, so they were counted.
    """

    reply: Reply | None = None
    malformed: str = ""
    text: str = ""
    tokens: int = 0
    cost: float | None = None
    estimated: bool = False


Trouble = Literal["too_slow", "unreachable", "waiting", "budget_spent"]


class ClientError(Exception):
    """There is no reply: the client took too long, can't be reached, waits for a person, or may not go on."""

    def __init__(self, outcome: Trouble, detail: str, used: int = 0) -> None:
        super().__init__(detail)
        self.outcome, self.detail, self.used = outcome, without_keys(detail), used


class Client(Protocol):
    """A writer. ``name`` goes into overrides; ``seconds`` bounds an answer, ``budget`` its tokens."""

    name: str

    def ask(self, prompt: Prompt, *, seconds: float, budget: int) -> ClientReply:
        """Answer one question; raises ClientError."""
        ...


def without_keys(text: str) -> str:
    """Return a text without what the environment keeps secret."""
    for name, value in os.environ.items():
        if _KEYS.search(name.upper()) and len(value) >= 6:
            text = text.replace(value, "***")
    return _SECRET.sub("***", text)


def make_client(spec: str | None, folder: Path) -> Client:
    """Make the client that a command line names (E0873); ``folder`` is where the files of a person's answers are."""
    if not spec:
        return FilesClient(folder)
    kind, _, rest = spec.partition(":")
    if kind in ("openai", "anthropic") and rest:
        try:
            from transpiler.agents.models import ModelClient
        except ImportError as exc:
            raise error("E0873", f"{spec} needs the extra `agents`: {exc}",
                        help="pip install 'cutile-transpiler[agents]'") from None  # fmt: skip
        return ModelClient(kind, rest)
    if kind == "command" and rest:
        return CommandClient(shlex.split(rest))
    if kind == "recorded" and rest:
        return RecordedClient.load(Path(rest))
    raise error(
        "E0873", f"`{spec}` is no client", help="openai:MODEL, anthropic:MODEL, command:PROGRAM or recorded:FILE"
    )


def text_reply(text: str, prompt: Prompt) -> ClientReply:
    """Read what a program printed; tokens are counted, as it doesn't say them."""
    used = tokens.count(prompt.whole) + tokens.count(text)
    shown = without_keys(text)
    try:
        return ClientReply(reply=from_text(text, Reply), text=shown, tokens=used, estimated=True)
    except MalformedError as exc:
        return ClientReply(malformed=without_keys(str(exc)), text=shown, tokens=used, estimated=True)


class CommandClient:
    """Pipes the question to a program, such as a coding agent's command line."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.name = f"command:{Path(command[0]).name}"

    def ask(self, prompt: Prompt, *, seconds: float, budget: int) -> ClientReply:
        """Run the program; what it prints is read up to a bound."""
        del budget
        question = f"{prompt.whole}\n{REPLY_FORMAT}"
        try:
            status, printed, complaint = _run(self.command, question, seconds)
        except TimeoutError:
            raise ClientError("too_slow", f"{self.name} took more than {seconds:g} s", tokens.count(question)) from None
        except OSError as exc:
            raise ClientError("unreachable", f"{self.name} can't be run: {exc.strerror}") from None
        if status:
            raise ClientError("unreachable", f"{self.name} ended with status {status}: {complaint}")
        return text_reply(printed, prompt)


def _run(command: list[str], question: str, seconds: float) -> tuple[int, str, str]:
    """Run a program for a bounded time and read a bounded part of what it prints: status, output, complaint.

    It is ended with all that it started once it has printed too much (status 0: the text is cut) or takes too long.
    """
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(question.encode())
        stdin.seek(0)
        with subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
        ) as run:
            try:
                printed, finished = _read(run, seconds)
                status = run.wait(_GRACE) if finished else 0
            except subprocess.TimeoutExpired:
                raise TimeoutError from None
            finally:
                if run.poll() is None:
                    os.killpg(run.pid, signal.SIGKILL)
        stderr.seek(0)
        return status, printed.decode(errors="replace"), stderr.read(300).decode(errors="replace").strip()


def _read(run: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bool]:
    """Read what is printed, up to a bound; also whether it ended there. Raises TimeoutError."""
    assert run.stdout is not None
    end, printed = time.monotonic() + seconds, b""
    while len(printed) < MAX_REPLY_BYTES:
        ready, _, _ = select.select([run.stdout], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(run.stdout.fileno(), MAX_REPLY_BYTES - len(printed))
        if not part:
            return printed, True
        printed += part
    return printed, False


REPLY_FORMAT = """\
Print the reply as text: a line `<VALIDATOR_OUTPUT>`, the JSON object below, a line `</VALIDATOR_OUTPUT>`, and the line
`VERDICT: ANSWERED`; or with "outcome": "declined", why in "detail", and `VERDICT: DECLINED`.
{"outcome": "answered", "answer": {"rust": "...", "results": [{"dtype": "$0", "shape": "$0"}]}}
"""


class RecordedClient:
    """Frozen answers: for each task's digest the replies to its questions, in order."""

    def __init__(self, name: str, replies: dict[str, list[ClientReply]]) -> None:
        self.name, self._replies = name, replies

    @staticmethod
    def load(path: Path) -> RecordedClient:
        """Read a file (E0873)."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            replies = {digest: [ClientReply.model_validate(r) for r in rows] for digest, rows in data.items()}
        except (OSError, ValueError, AttributeError) as exc:
            raise error("E0873", f"{path.as_posix()} isn't a file of recorded answers: {exc}") from None
        return RecordedClient(f"recorded:{path.stem}", replies)

    def ask(self, prompt: Prompt, *, seconds: float, budget: int) -> ClientReply:
        """Return the reply to the question's number."""
        del seconds, budget
        found = self._replies.get(prompt.task.digest, [])
        if prompt.number > len(found):
            raise ClientError("unreachable", f"{self.name} has no answer {prompt.number} to task {prompt.task.digest}")
        return found[prompt.number - 1]


class FilesClient:
    """A person: the question becomes ``tasks/DIGEST.md``, the answer is what ``answers/DIGEST.toml`` holds.

    An answer is read once a run. When it fails, the next question says why, and the person changes the file.
    """

    name = "hand"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: set[str] = set()

    def ask(self, prompt: Prompt, *, seconds: float, budget: int) -> ClientReply:
        """Return the answer in the file, or write the question and wait."""
        del seconds, budget
        digest = prompt.task.digest
        answer = self.folder / "answers" / f"{digest}.toml"
        if digest not in self._read and answer.is_file():
            self._read.add(digest)
            return _file_reply(answer)
        self._write(f"tasks/{digest}.json", prompt.task.model_dump_json(indent=1) + "\n")
        again, question = self.folder.parent.as_posix(), (self.folder / f"tasks/{digest}.md").as_posix()
        self._write(f"tasks/{digest}.md", prompt.whole + _BY_HAND.format(answer=answer.as_posix(), folder=again))
        raise ClientError(
            "waiting", f"read {question}, write {answer.as_posix()}, and run `transpile fill {again}` again"
        )

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)


_BY_HAND = """
Write the answer to {answer} as TOML, for example

    rust = "exp2($0, ftz::Disabled)"
    [[results]]
    dtype = "$0"
    shape = "$0"

and run `transpile fill {folder}` again: it checks the answer and says what differs.
"""


def _file_reply(path: Path) -> ClientReply:
    """The answer in a file, or in one line why it is none."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_REPLY_BYTES + 1)
        if len(data) > MAX_REPLY_BYTES:
            raise ValueError(f"it is longer than {MAX_REPLY_BYTES} bytes")
        text = data.decode()
        answer = Answer.model_validate(tomllib.loads(text))
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        return ClientReply(malformed=f"{path.as_posix()}: {'.'.join(map(str, first['loc']))}: {first['msg']}")
    except UnicodeDecodeError:
        return ClientReply(malformed=f"{path.as_posix()}: it isn't UTF-8")
    except (OSError, ValueError) as exc:  # no TOML, too long
        return ClientReply(malformed=f"{path.as_posix()}: {exc}".partition("\n")[0])
    return ClientReply(reply=Reply(outcome="answered", answer=answer), text=text)
