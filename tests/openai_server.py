"""A small HTTP server that speaks the OpenAI protocol (chat completions, streamed) and plays what a test wants.

Anthropic's protocol is tests/anthropic_server.py, which plays the same.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions.

    ``play`` is good, malformed, text, refusal, endless, slow, torn (the connection ends in the answer), unauthorized,
    limited (429 for ever), limited_once, or overloaded (a 529 for ever).
    """

    play: ClassVar[str] = "good"
    retry_after: ClassVar[str] = "1"
    reply: ClassVar[dict[str, Any]] = {}
    requests: ClassVar[list[dict[str, Any]]] = []
    sent: ClassVar[int] = 0
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """One question."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Handler.requests.append({"path": self.path, "key": self._key(), **body})
        if (failure := self._failure()) is not None:
            self._json(*failure)
            return
        if self.play == "slow":
            time.sleep(3.0)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for number, event in enumerate(self._events(body)):
                if self.play == "torn" and number == 4:
                    self.close_connection = True
                    return
                self._event(event)
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _key(self) -> str:
        """The key that came with the question, in whichever header."""
        return str(self.headers.get("authorization") or self.headers.get("x-api-key") or "")

    def _failure(self) -> tuple[int, dict[str, Any]] | None:
        """The status and body of an answer that is an error."""
        key = self._key()
        if self.play == "unauthorized":
            return 401, {"error": {"message": f"bad key: {key}", "type": "auth"}}
        if self.play == "limited" or (self.play == "limited_once" and len(self.requests) == 1):
            return 429, {"error": {"message": f"too many requests for {key}", "type": "rate_limit"}}
        if self.play == "overloaded":
            return 529, {"error": {"message": "overloaded", "type": "overloaded_error"}}
        return None

    def _json(self, status: int, data: dict[str, Any]) -> None:
        text = json.dumps(data).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("retry-after", self.retry_after)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _event(self, event: str) -> None:
        text = event.encode()
        self.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        self.wfile.flush()
        Handler.sent += len(text)

    def _events(self, body: dict[str, Any]) -> Iterator[str]:
        """The events of a stream, as text."""
        yield from (f"data: {json.dumps(chunk)}\n\n" for chunk in self._chunks(body))
        yield "data: [DONE]\n\n"

    def _chunks(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self.play in ("text", "refusal"):
            field = "content" if self.play == "text" else "refusal"
            yield _chunk({"role": "assistant", field: "I would rather talk about the weather."})
            yield _chunk({}, "stop")
        else:
            text = json.dumps(self.reply) if self.play != "malformed" else '{"outcome": "maybe"}'
            name = body["tools"][0]["function"]["name"] if body.get("tools") else ""
            yield _tool(name, "", first=True)
            for piece in forever() if self.play == "endless" else pieces(text):
                yield _tool("", piece)
            yield _chunk({}, "tool_calls")
        usage = {"prompt_tokens": 500, "completion_tokens": 42, "total_tokens": 542}
        yield {**_chunk({}), "choices": [], "usage": usage}


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": [choice]}


def _tool(name: str, arguments: str, first: bool = False) -> dict[str, Any]:
    call: dict[str, Any] = {"index": 0, "function": {"arguments": arguments}}
    if first:
        call |= {"id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    return _chunk({"tool_calls": [call]})


def pieces(text: str) -> Iterator[str]:
    """A text in small parts."""
    for start in range(0, len(text), 7):
        yield text[start : start + 7]


def forever() -> Iterator[str]:
    """The arguments of a reply that doesn't end."""
    yield '{"outcome": "answered", "detail": "'
    while True:
        yield "la " * 300


@contextmanager
def serving(
    play: str, reply: dict[str, Any] | None = None, handler: type[Handler] = Handler, prefix: str = "/v1"
) -> Iterator[str]:
    """Serve; yields the base URL."""
    Handler.play, Handler.reply, Handler.requests, Handler.sent = play, reply or {}, [], 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
