"""The transcript of a folder's runs, one JSON object a line: what was asked and answered, and every verdict.

A run that was cut goes on from it: answers are read from here instead of asking again, and everything else is done
again, which costs no tokens and leaves no state of its own. A line that was cut off is not there. Keys never reach it:
it holds prompts' digests, answers, token counts and verdicts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transpiler.agents.clients import ClientReply
from transpiler.agents.prompt import Prompt
from transpiler.agents.verdicts import Verdict
from transpiler.json_lines import objects


class Transcript:
    """Reads what is there, appends what is new."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """``fresh``: answers of earlier runs are asked for again."""
        self.path = path
        self._known: dict[tuple[str, str], ClientReply] = {}
        if not fresh:
            for row in self.rows():
                if "reply" in row:
                    self._known[row["client"], row["question"]] = ClientReply.model_validate(row["reply"])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the objects of the file; damaged lines are left out."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except OSError:
            return
        yield from objects(text)

    def find(self, client: str, prompt: Prompt) -> ClientReply | None:
        """Return what the client answered to this very question before."""
        return self._known.get((client, prompt.digest))

    def asked(self, client: str, prompt: Prompt, reply: ClientReply) -> None:
        """Keep an answer; it is on the disk when this returns."""
        self._known[client, prompt.digest] = reply
        self._append({"task": prompt.task.digest, "client": client, "kind": prompt.kind, "question": prompt.digest,
                      "reply": reply.model_dump(mode="json")})  # fmt: skip

    def verdict(self, task: str, construct: str, verdict: Verdict) -> None:
        """Note a verdict."""
        self._append({"task": task, "construct": construct, "verdict": verdict.model_dump(mode="json")})

    def _append(self, row: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(row, ensure_ascii=True) + "\n"
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * torn + text)
            file.flush()
            os.fsync(file.fileno())
