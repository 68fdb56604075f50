"""The small HTTP server of tests/openai_server.py, in Anthropic's protocol (messages, streamed)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import openai_server
from openai_server import forever, pieces

MODEL = "claude-sonnet-4-6"


class Handler(openai_server.Handler):
    """Answers POST /v1/messages; ``play`` is what the other server plays."""

    def _failure(self) -> tuple[int, dict[str, Any]] | None:
        failure = super()._failure()
        return None if failure is None else (failure[0], {"type": "error", **failure[1]})

    def _events(self, body: dict[str, Any]) -> Iterator[str]:
        for event in self._messages(body):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

    def _messages(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        usage = {"input_tokens": 500, "output_tokens": 1}
        message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
        yield {"type": "message_start", "message": message}
        stop = "end_turn"
        if self.play == "refusal":
            stop = "refusal"
        elif self.play == "text":
            yield from _block({"type": "text", "text": ""}, "text_delta", "text", ["I'd rather talk ", "of rain."])
        else:
            text = json.dumps(self.reply) if self.play != "malformed" else '{"outcome": "maybe"}'
            parts = forever() if self.play == "endless" else pieces(text)
            name = body["tools"][0]["name"] if body.get("tools") else ""
            start: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
            yield from _block(start, "input_json_delta", "partial_json", parts)
            stop = "tool_use"
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 42}}
        yield {"type": "message_stop"}


def _block(start: dict[str, Any], kind: str, field: str, parts: Iterator[str] | list[str]) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": 0, "content_block": start}
    for part in parts:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: part}}
    yield {"type": "content_block_stop", "index": 0}


def serving(play: str, reply: dict[str, Any] | None = None) -> AbstractContextManager[str]:
    """Serve; gives the base URL."""
    return openai_server.serving(play, reply, Handler, "")
