"""Clients of `transpile fill`: an OpenAI-compatible endpoint (here, without a network), programs, records, files."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import agents_bench as ab
import pytest
from openai_server import Handler, serving

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


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return monkeypatch


def _ask(
    base: str, endpoint: pytest.MonkeyPatch, prompt: Prompt, seconds: float = 20.0, budget: int = 9_000
) -> ClientReply:
    endpoint.setenv("OPENAI_BASE_URL", base)
    return make_client("openai:gpt-4o", Path()).ask(prompt, seconds=seconds, budget=budget)


# -- an endpoint ------------------------------------------------------------------------------------------


def test_an_endpoint_answers_in_a_stream(endpoint: pytest.MonkeyPatch, prompt: Prompt) -> None:
    with serving("good", GOOD) as base:
        reply = _ask(base, endpoint, prompt)
    assert reply.reply is not None and reply.reply.answer is not None
    assert reply.reply.answer.rust == "exp2($0, ftz::Disabled)" and reply.reply.answer.results == ab.SAME
    assert (reply.tokens, reply.estimated) == (542, False)
    assert reply.cost is not None and 0 < reply.cost < 0.1
    (request,) = Handler.requests
    assert request["path"] == "/v1/chat/completions" and request["stream"] is True
    assert request["key"] == f"Bearer {KEY}"
    assert request["max_completion_tokens"] == 9_000  # no more than the budget
    sent = json.dumps(request["messages"])
    assert prompt.task.digest not in sent and "cuda.tile.exp2" in sent


@pytest.mark.parametrize("play", ["malformed", "text", "refusal"])
def test_an_answer_that_is_none(endpoint: pytest.MonkeyPatch, prompt: Prompt, play: str) -> None:
    with serving(play) as base:
        reply = _ask(base, endpoint, prompt)
        assert len(Handler.requests) == 1  # what follows is the state machine's
    declined = reply.reply is not None and reply.reply.outcome == "declined"
    assert declined or (reply.reply is None and reply.malformed)
    assert reply.tokens > 0


def test_an_endless_stream_is_cut(endpoint: pytest.MonkeyPatch, prompt: Prompt) -> None:
    with serving("endless") as base:
        reply = _ask(base, endpoint, prompt)
    assert reply.reply is None and "longer than" in reply.malformed
    assert Handler.sent < 1_000 * MAX_REPLY_BYTES


def test_a_slow_endpoint(endpoint: pytest.MonkeyPatch, prompt: Prompt) -> None:
    started = time.monotonic()
    with serving("slow", GOOD) as base, pytest.raises(ClientError) as caught:
        _ask(base, endpoint, prompt, seconds=0.5)
    assert caught.value.outcome == "too_slow" and time.monotonic() - started < 8
    assert caught.value.used > 100  # what was sent is charged


def test_an_endpoint_that_is_not_there(endpoint: pytest.MonkeyPatch, prompt: Prompt) -> None:
    with pytest.raises(ClientError) as caught:
        _ask("http://127.0.0.1:9/v1", endpoint, prompt)
    assert caught.value.outcome == "unreachable"


def test_anthropics_endpoint(monkeypatch: pytest.MonkeyPatch, prompt: Prompt) -> None:
    """The client is made and asks; nobody listens."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    client = make_client("anthropic:claude-sonnet-4-5", Path())
    assert client.name == "anthropic:claude-sonnet-4-5"
    with pytest.raises(ClientError) as caught:
        client.ask(prompt, seconds=20, budget=9_000)
    assert caught.value.outcome == "unreachable"


def test_keys_are_in_nothing_that_is_kept(endpoint: pytest.MonkeyPatch, prompt: Prompt, tmp_path: Path) -> None:
    with serving("unauthorized") as base, pytest.raises(ClientError) as caught:
        _ask(base, endpoint, prompt)
    assert caught.value.outcome == "unreachable" and "bad key" in caught.value.detail
    assert KEY not in caught.value.detail and "***" in caught.value.detail
    leaking = {"outcome": "declined", "detail": f"your key is {KEY}"}
    with serving("good", leaking) as base:
        reply = _ask(base, endpoint, prompt)
    transcript = Transcript(tmp_path / "transcript.jsonl")
    transcript.asked("openai:gpt-4o", prompt, reply)
    assert "your key is ***" in transcript.path.read_text() and KEY not in transcript.path.read_text()
    assert (
        transcript.find("openai:gpt-4o", prompt) == Transcript(transcript.path).find("openai:gpt-4o", prompt) == reply
    )


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
    answer.write_text("rust = 1")
    assert FilesClient(tmp_path / "_agents").ask(prompt, seconds=1, budget=1).malformed


@pytest.mark.parametrize("spec", ["gpt-5", "openai:", "telepathy:me", "recorded:/no/such/file"])
def test_no_such_client(tmp_path: Path, spec: str) -> None:
    with pytest.raises(TranspileError, match="E0873"):
        make_client(spec, tmp_path)
