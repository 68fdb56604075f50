"""Models behind an endpoint, through pydantic-ai: structured output, usage limits, prices."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Literal

from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.models import Model as RemoteModel
from pydantic_ai.usage import RunUsage, UsageLimits

from transpiler.agents import tokens
from transpiler.agents.clients import MAX_REPLY_BYTES, ClientError, ClientReply, without_keys
from transpiler.agents.prompt import INSTRUCTIONS, Prompt
from transpiler.agents.verdicts import Reply

MAX_ANSWER_TOKENS = 12_000
"""What a model thinks before it answers counts as well."""
OUTPUT_MODE = "TRANSPILE_OUTPUT_MODE"
"""How the answer's structure is asked for: ``tool`` (default), ``native``, or ``prompted`` for simple endpoints."""
_MODES: dict[str, Any] = {"tool": ToolOutput, "native": NativeOutput, "prompted": PromptedOutput}


class ModelClient:
    """A model of an OpenAI-compatible endpoint or of Anthropic's. Answers are streamed: a bound can end them."""

    def __init__(self, provider: Literal["openai", "anthropic"] | str, model: str) -> None:
        self.name = f"{provider}:{model}"
        self._provider, self._model = provider, model

    def _remote(self) -> RemoteModel:
        if self._provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel

            return AnthropicModel(self._model)
        from pydantic_ai.models.openai import OpenAIChatModel

        return OpenAIChatModel(self._model)

    def ask(self, prompt: Prompt, *, seconds: float, budget: int) -> ClientReply:
        """Ask once, without retries of the library's own: what follows a bad answer is the state machine's."""
        usage = RunUsage()
        sent = tokens.count(prompt.whole)
        try:
            return asyncio.run(self._ask(prompt, seconds, budget, usage))
        except TimeoutError:
            raise ClientError("too_slow", f"{self.name} took more than {seconds:g} s", _used(usage, sent)) from None
        except UsageLimitExceeded as exc:
            raise ClientError("budget_spent", str(exc), _used(usage, sent)) from None
        except ContentFilterError as exc:
            said = Reply(outcome="declined", detail=without_keys(str(exc))[:300])
            return ClientReply(reply=said, tokens=_used(usage, sent), estimated=not usage.total_tokens)
        except UnexpectedModelBehavior as exc:
            return ClientReply(malformed=without_keys(str(exc))[:300], tokens=_used(usage, sent),
                               estimated=not usage.total_tokens)  # fmt: skip
        except (ModelAPIError, UserError, AgentRunError, OSError) as exc:
            raise ClientError("unreachable", f"{self.name}: {exc}"[:500]) from None

    async def _ask(self, prompt: Prompt, seconds: float, budget: int, usage: RunUsage) -> ClientReply:
        mode = _MODES[os.environ.get(OUTPUT_MODE, "tool")]
        agent: Agent[object, Reply] = Agent(
            self._remote(), output_type=mode(Reply), instructions=INSTRUCTIONS, retries=0
        )
        limits = UsageLimits(request_limit=1, total_tokens_limit=max(1, budget))
        settings: Any = {"max_tokens": min(MAX_ANSWER_TOKENS, max(1, budget)), "timeout": seconds}
        async with (
            asyncio.timeout(seconds),
            agent.run_stream(prompt.text, usage_limits=limits, usage=usage, model_settings=settings) as run,
        ):
            async for partial in run.stream_response():
                if len(repr(partial.parts)) > MAX_REPLY_BYTES:
                    await run.cancel()
                    return ClientReply(malformed=f"the reply is longer than {MAX_REPLY_BYTES} bytes", estimated=True,
                                       tokens=tokens.count(prompt.whole) + MAX_REPLY_BYTES // 3)  # fmt: skip
            reply = await run.get_output()
            spent = run.usage
            cost = _cost(run.response)
        shown = without_keys(reply.model_dump_json())
        counted = tokens.count(prompt.whole) + tokens.count(shown)
        return ClientReply(reply=Reply.model_validate_json(shown), text=shown, tokens=spent.total_tokens or counted,
                           cost=cost, estimated=not spent.total_tokens)  # fmt: skip


def _used(usage: RunUsage, sent: int) -> int:
    """Tokens of a failed question: what the endpoint said, else what was sent."""
    return usage.total_tokens or sent


def _cost(response: Any) -> float | None:
    """The price in US dollars, where the library knows the model's."""
    try:
        return float(response.cost().total_price)
    except (AssertionError, LookupError, ValueError):
        return None
