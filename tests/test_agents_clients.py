"""Clients of `transpile fill`: endpoints in both protocols (here, without a network), programs, records, files."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import agents_bench as ab
import anthropic_server
import openai_server
import pytest
from openai_server import Handler

from transpiler.agents.clients import (
    MAX_REPLY_BYTES,
    ClientError,
    ClientReply,
    CommandClient,
    FilesClient,
    RecordedClient,
    make_client,
    without_keys,
)
from transpiler.agents.prompt import Prompt, first_prompt
from transpiler.agents.task import HoleTask
from transpiler.agents.transcript import Transcript
from transpiler.agents.verdicts import MalformedError, Reply, from_text, to_text
from transpiler.diagnostics import TranspileError
from transpiler.overrides import ConstructKey

KEY = "sk-test-0123456789abcdef"
GOOD = {
    "outcome": "answered",
    "answer": {"rust": "exp2($0, ftz::Disabled)", "results": [{"dtype": "$0", "shape": "$0"}]},
}


@pytest.fixture
def prompt() -> Prompt:
    hole = ConstructKey(kind="call", name="cuda.tile.exp2", operands=("tile generic 1",))
    task = HoleTask(digest="0123456789abcdef", hole=hole, code="E0301", reason="no rule", operator="k", kernel="k",
                    file="k.py", line=1, specializations=("s",), python=())  # fmt: skip
    return first_prompt(task)


# -- endpoints --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """How a provider's endpoint is reached, and where its answers are."""

    client: str
    variable: str
    serving: Callable[..., AbstractContextManager[str]]
    path: str
    max_tokens: str


PROTOCOLS = {
    "openai": Protocol("openai:gpt-4o", "OPENAI", openai_server.serving, "/v1/chat/completions",
                       "max_completion_tokens"),
    "anthropic": Protocol(f"anthropic:{anthropic_server.MODEL}", "ANTHROPIC", anthropic_server.serving,
                          "/v1/messages", "max_tokens"),
}  # fmt: skip


@dataclass
class Endpoint:
    """A provider, in an environment that has its key."""

    protocol: Protocol
    environment: pytest.MonkeyPatch
    prompt: Prompt

    def ask(self, base: str, seconds: float = 20.0, budget: int = 9_000) -> ClientReply:
        """Ask who listens there."""
        self.environment.setenv(f"{self.protocol.variable}_BASE_URL", base)
        return make_client(self.protocol.client, Path()).ask(self.prompt, seconds=seconds, budget=budget)

    def play(self, play: str, seconds: float = 20.0, budget: int = 9_000) -> ClientReply:
        """Ask a server that plays something; a good one gives GOOD."""
        with self.protocol.serving(play, GOOD) as base:
            return self.ask(base, seconds, budget)


@pytest.fixture(params=PROTOCOLS)
def endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, prompt: Prompt) -> Endpoint:
    protocol = PROTOCOLS[request.param]
    monkeypatch.setenv(f"{protocol.variable}_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return Endpoint(protocol, monkeypatch, prompt)


def test_an_endpoint_answers_in_a_stream(endpoint: Endpoint) -> None:
    reply = endpoint.play("good")
    assert reply.reply is not None and reply.reply.answer is not None
    assert reply.reply.answer.rust == "exp2($0, ftz::Disabled)" and reply.reply.answer.results == ab.SAME
    assert (reply.tokens, reply.estimated) == (542, False)
    assert reply.cost is not None and 0 < reply.cost < 0.1
    (request,) = Handler.requests
    assert request["path"].partition("?")[0] == endpoint.protocol.path and request["stream"] is True
    assert request["key"].removeprefix("Bearer ") == KEY
    assert request[endpoint.protocol.max_tokens] == 9_000  # no more than the budget
    sent = json.dumps(request["messages"])
    assert endpoint.prompt.task.digest not in sent and "cuda.tile.exp2" in sent


@pytest.mark.parametrize("play", ["malformed", "text", "refusal"])
def test_an_answer_that_is_none(endpoint: Endpoint, play: str) -> None:
    reply = endpoint.play(play)
    assert len(Handler.requests) == 1  # what follows is the state machine's
    declined = reply.reply is not None and reply.reply.outcome == "declined"
    assert declined == (play == "refusal") and (declined or (reply.reply is None and reply.malformed))
    assert reply.tokens == 542 and not reply.estimated


def test_an_endless_stream_is_cut(endpoint: Endpoint) -> None:
    reply = endpoint.play("endless")
    assert reply.reply is None and "longer than" in reply.malformed
    assert Handler.sent < 1_000 * MAX_REPLY_BYTES


def test_a_slow_endpoint(endpoint: Endpoint) -> None:
    started = time.monotonic()
    with pytest.raises(ClientError) as caught:
        endpoint.play("slow", seconds=0.5)
    assert caught.value.outcome == "too_slow" and time.monotonic() - started < 8
    assert caught.value.used > 100  # what was sent is charged


def test_an_endpoint_that_limits_once(endpoint: Endpoint) -> None:
    """The library waits as long as the endpoint says, and asks again: no question is counted twice."""
    reply = endpoint.play("limited_once")
    assert reply.reply is not None and reply.tokens == 542 and len(Handler.requests) == 2


@pytest.mark.parametrize(("play", "status"), [("limited", "429"), ("overloaded", "529"), ("unauthorized", "401")])
def test_an_endpoint_that_refuses_to_work(endpoint: Endpoint, play: str, status: str) -> None:
    with pytest.raises(ClientError) as caught:
        endpoint.play(play, seconds=30)
    assert caught.value.outcome == "unreachable" and status in caught.value.detail
    assert KEY not in caught.value.detail
    assert len(Handler.requests) == (1 if play == "unauthorized" else 3)


def test_a_limit_that_lasts_longer_than_an_answer_may(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "retry_after", "50")
    started = time.monotonic()
    with pytest.raises(ClientError) as caught:
        endpoint.play("limited", seconds=1.0)
    assert caught.value.outcome == "too_slow" and time.monotonic() - started < 8


def test_a_stream_that_ends_in_the_answer(endpoint: Endpoint) -> None:
    try:
        reply = endpoint.play("torn")
    except ClientError as trouble:
        assert trouble.outcome == "unreachable"
    else:
        assert reply.reply is None and reply.malformed
    assert len(Handler.requests) == 1


def test_an_endpoint_that_is_not_there(endpoint: Endpoint) -> None:
    with pytest.raises(ClientError) as caught:
        endpoint.ask("http://127.0.0.1:9")
    assert caught.value.outcome == "unreachable"


def test_a_provider_without_a_key(monkeypatch: pytest.MonkeyPatch, prompt: Prompt) -> None:
    """Nothing is sent; an OpenAI-compatible endpoint of one's own may do without."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for client, variable in (("openai:gpt-4o", "OPENAI_API_KEY"), (PROTOCOLS["anthropic"].client, "ANTHROPIC_API_KEY")):
        with pytest.raises(ClientError) as caught:
            make_client(client, Path()).ask(prompt, seconds=5, budget=9_000)
        assert caught.value.outcome == "unreachable" and variable in caught.value.detail


def test_keys_are_in_nothing_that_is_kept(endpoint: Endpoint, tmp_path: Path) -> None:
    with pytest.raises(ClientError) as caught:
        endpoint.play("unauthorized")
    assert caught.value.outcome == "unreachable" and "bad key" in caught.value.detail
    assert KEY not in caught.value.detail and "***" in caught.value.detail
    leaking = {"outcome": "declined", "detail": f"your key is {KEY}"}
    with endpoint.protocol.serving("good", leaking) as base:
        reply = endpoint.ask(base)
    transcript, name = Transcript(tmp_path / "transcript.jsonl"), endpoint.protocol.client
    transcript.asked(name, endpoint.prompt, reply)
    assert "your key is ***" in transcript.path.read_text() and KEY not in transcript.path.read_text()
    again = Transcript(transcript.path).find(name, endpoint.prompt)
    assert transcript.find(name, endpoint.prompt) == again == reply


def test_a_key_of_any_provider_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_API_KEY", "opensesame-and-more")
    assert without_keys("say opensesame-and-more, sk-ant-api03-abcdefgh") == "say ***, ***"


# -- programs ---------------------------------------------------------------------------------------------


def _program(folder: Path, text: str) -> CommandClient:
    path = folder / "client.py"
    path.write_text(text)
    client = make_client(f"command:{shlex.quote(sys.executable)} {shlex.quote(str(path))}", folder)
    assert isinstance(client, CommandClient)
    return client


def test_a_program_reads_the_task_and_prints_a_reply(tmp_path: Path, prompt: Prompt) -> None:
    said = to_text(Reply.model_validate(GOOD))
    client = _program(tmp_path, f"import sys\nassert 'cuda.tile.exp2' in sys.stdin.read()\nprint('Here it is:')\n"
                                f"print({said!r})")  # fmt: skip
    reply = client.ask(prompt, seconds=20, budget=10_000)
    assert reply.reply is not None and reply.reply.answer is not None and reply.estimated and reply.tokens > 300
    assert client.name.startswith("command:python") and "/" not in client.name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('hello')", "no <VALIDATOR_OUTPUT> block"),
        ("print('<VALIDATOR_OUTPUT>{}</VALIDATOR_OUTPUT>')", "no line"),
        ('print(\'<VALIDATOR_OUTPUT>\\n{"outcome": "declined"}\\n</VALIDATOR_OUTPUT>\\nVERDICT: ANSWERED\')', "same"),
        ("print('<VALIDATOR_OUTPUT>\\n{\"outcome\": 1}\\n</VALIDATOR_OUTPUT>\\nVERDICT: ANSWERED')", "isn't what was"),
        ("while True: print('la ' * 1000)", "no <VALIDATOR_OUTPUT> block"),
    ],
)
def test_a_program_that_prints_something_else(tmp_path: Path, prompt: Prompt, text: str, why: str) -> None:
    reply = _program(tmp_path, text).ask(prompt, seconds=20, budget=10_000)
    assert reply.reply is None and why in reply.malformed and len(reply.text) <= MAX_REPLY_BYTES


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("import time; time.sleep(60)", "too_slow"), ("import sys; sys.exit('no licence')", "unreachable")],
)
def test_a_program_that_hangs_or_fails(tmp_path: Path, prompt: Prompt, text: str, outcome: str) -> None:
    started = time.monotonic()
    with pytest.raises(ClientError) as caught:
        _program(tmp_path, text).ask(prompt, seconds=2.0, budget=10_000)
    assert caught.value.outcome == outcome and time.monotonic() - started < 10


def test_a_program_that_is_not_there(prompt: Prompt) -> None:
    with pytest.raises(ClientError) as caught:
        CommandClient(["/no/such/program"]).ask(prompt, seconds=5, budget=1)
    assert caught.value.outcome == "unreachable" and "No such file" in caught.value.detail


def test_a_verdict_as_text_and_back() -> None:
    reply = Reply.model_validate(GOOD)
    assert from_text(f"thinking..\n{to_text(reply)}\nbye", Reply) == reply
    with pytest.raises(MalformedError):
        from_text(to_text(reply).replace("VERDICT: ANSWERED", "VERDICT: DECLINED"), Reply)


# -- records and files ------------------------------------------------------------------------------------


def test_recorded_answers_go_by_the_task(tmp_path: Path, prompt: Prompt) -> None:
    record = tmp_path / "answers.json"
    record.write_text(
        json.dumps({prompt.task.digest: [ab.answered("exp2($0, ftz::Disabled)").model_dump(mode="json")]})
    )
    client = make_client(f"recorded:{record}", tmp_path)
    assert client.name == "recorded:answers"
    assert client.ask(prompt, seconds=1, budget=1).tokens == 100
    with pytest.raises(ClientError):
        RecordedClient("recorded:none", {}).ask(prompt, seconds=1, budget=1)


def test_a_person_answers_in_a_file(tmp_path: Path, prompt: Prompt) -> None:
    client = FilesClient(tmp_path / "_agents")
    with pytest.raises(ClientError) as caught:
        client.ask(prompt, seconds=1, budget=1)
    assert caught.value.outcome == "waiting"
    question = (tmp_path / "_agents" / "tasks" / f"{prompt.task.digest}.md").read_text()
    assert prompt.text in question and "[[results]]" in question
    answers = tmp_path / "_agents" / "answers"
    answers.mkdir()
    answer = answers / f"{prompt.task.digest}.toml"
    answer.write_text('rust = "exp2($0, ftz::Disabled)"\n[[results]]\ndtype = "$0"\nshape = "$0"\n')
    reply = client.ask(prompt, seconds=1, budget=1)
    assert reply.reply is not None and reply.reply.answer is not None and reply.tokens == 0
    with pytest.raises(ClientError):  # read once a run: the next question waits for a change
        client.ask(prompt, seconds=1, budget=1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"rust": "$0"}', "line 1"),
        (b"rust = 1", "rust: Input should be a valid string"),
        (b"", "rust: Field required"),
        (b'rust = "$0"\nmore = 1', "more: Extra inputs"),
        (b"\xff\xfe\x00", "it isn't UTF-8"),
        (b'rust = "' + b"a" * 1_000_000 + b'"', "longer than 64000 bytes"),
        (b'rust = "' + b"a" * 30_000 + b'"', "at most 20000 characters"),
    ],
)
def test_a_file_that_is_no_answer(tmp_path: Path, prompt: Prompt, data: bytes, why: str) -> None:
    answers = tmp_path / "_agents" / "answers"
    answers.mkdir(parents=True)
    (answers / f"{prompt.task.digest}.toml").write_bytes(data)
    reply = FilesClient(tmp_path / "_agents").ask(prompt, seconds=1, budget=1)
    assert reply.reply is None and why in reply.malformed and "\n" not in reply.malformed
    assert f"{prompt.task.digest}.toml: " in reply.malformed


@pytest.mark.parametrize("spec", ["gpt-5", "openai:", "telepathy:me", "recorded:/no/such/file"])
def test_no_such_client(tmp_path: Path, spec: str) -> None:
    with pytest.raises(TranspileError, match="E0873"):
        make_client(spec, tmp_path)
