"""A small HTTP server that speaks the OpenAI protocol (chat completions, streamed) and plays what a test wants."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions; ``play`` is good, malformed, text, refusal, endless, slow or unauthorized."""

    play: ClassVar[str] = "good"
    reply: ClassVar[dict[str, Any]] = {}
    requests: ClassVar[list[dict[str, Any]]] = []
    sent: ClassVar[int] = 0
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """One question."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Handler.requests.append({"path": self.path, "key": self.headers.get("authorization", ""), **body})
        if self.play == "unauthorized":
            self._json(401, {"error": {"message": f"bad key: {self.headers['authorization']}", "type": "auth"}})
            return
        if self.play == "slow":
            time.sleep(3.0)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for chunk in self._chunks(body):
                self._event(json.dumps(chunk))
            self._event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _json(self, status: int, data: dict[str, Any]) -> None:
        text = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _event(self, data: str) -> None:
        text = f"data: {data}\n\n".encode()
        self.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        self.wfile.flush()
        Handler.sent += len(text)

    def _chunks(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self.play in ("text", "refusal"):
            field = "content" if self.play == "text" else "refusal"
            yield _chunk({"role": "assistant", field: "I would rather talk about the weather."})
            yield _chunk({}, "stop")
        else:
            text = json.dumps(self.reply) if self.play != "malformed" else '{"outcome": "maybe"}'
            name = body["tools"][0]["function"]["name"] if body.get("tools") else ""
            yield _tool(name, "", first=True)
            for piece in _forever() if self.play == "endless" else _pieces(text):
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


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), 7):
        yield text[start : start + 7]


def _forever() -> Iterator[str]:
    yield '{"outcome": "answered", "detail": "'
    while True:
        yield "la " * 300


@contextmanager
def serving(play: str, reply: dict[str, Any] | None = None) -> Iterator[str]:
    """Serve; yields the base URL."""
    Handler.play, Handler.reply, Handler.requests, Handler.sent = play, reply or {}, [], 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
