"""The asynchronous client: everything the synchronous one has, and a loop that is never blocked."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from lollms_client import LollmsClient
from lollms_client import events as ev
from lollms_client.aio import AHEAD, AsyncLollmsClient
from lollms_client.errors import BackendError, NotConfiguredError
from lollms_client.testing import Reply, ScriptedLLM, ScriptedTools, call

AT_ONCE = {"cancel", "extract_code_blocks", "extract_thinking_blocks", "remove_thinking_blocks"}
INNER = {"generator", "manager_of", "need", "thinking_tags", "turn_with"}


def client_with(script):
    client = LollmsClient()
    client.llm = ScriptedLLM(script)
    client.tools = ScriptedTools({"add": lambda a, b: a + b})
    return AsyncLollmsClient(client)


def played(coroutine):
    async def bounded():
        async with asyncio.timeout(30):
            return await coroutine

    return asyncio.run(bounded())


@pytest.mark.parametrize("name", [n for n, v in inspect.getmembers(LollmsClient, inspect.isfunction) if not n.startswith("_")])
def test_every_method_of_the_client_stands_here_with_its_signature(name):
    if name in INNER:
        with pytest.raises(AttributeError, match="synchronous client"):
            getattr(AsyncLollmsClient(), name)
        return
    if name in AT_ONCE:
        assert getattr(AsyncLollmsClient(LollmsClient()), name)
        return
    ours = getattr(AsyncLollmsClient, name)
    assert inspect.signature(ours) == inspect.signature(getattr(LollmsClient, name))
    assert inspect.isasyncgenfunction(ours) if name == "run_turn" else inspect.iscoroutinefunction(ours)


@pytest.mark.req("DG-roadmap.3")
def test_generation_chat_and_tools_are_awaited_while_the_loop_goes_on():
    class Discussion:
        def export(self, fmt):
            return [{"role": "user", "content": "Hi"}]

    async def program():
        go = threading.Event()
        answer = Reply(["Hello"])

        def slowly(request):
            assert go.wait(20)
            return answer

        client = client_with([slowly, "chatted", call("add", a=1, b=2), "3"])
        waiting = asyncio.create_task(client.generate_text("x"))
        await asyncio.sleep(0)
        assert not waiting.done()
        go.set()  # reached while the call waits: the loop is free
        texts = [await waiting, await client.chat(Discussion())]
        tools = await client.generate_with_mcp("Go.")
        return [*texts, tools["final_answer"]]

    assert played(program()) == ["Hello", "chatted", "3"]


def test_the_events_of_a_turn_are_the_same_both_ways():
    script = [call("add", a=1, b=2), ["It ", "is ", "3."]]

    async def program():
        return [type(event) async for event in client_with(script).run_turn("Go.")]

    assert played(program()) == [type(event) for event in client_with(script).client.run_turn("Go.")]


def test_a_turn_that_nobody_listens_to_waits_and_goes_on():
    many = AHEAD * 3

    async def program():
        client = client_with([["x"] * many])
        turn = client.run_turn("Go.")
        first = await anext(turn)
        await asyncio.sleep(0)
        return 1 + len([event async for event in turn]), first

    count, first = played(program())
    assert isinstance(first, ev.TurnStarted)
    assert count == many + 4


def test_a_cancelled_task_cancels_its_own_call_and_no_other():
    async def program():
        client = client_with([Reply(["never"] * 3, delay=20.0), "other"])
        cut = asyncio.create_task(client.generate_text("x"))
        while not client.llm.requests:
            await asyncio.sleep(0.001)
        other = asyncio.create_task(client.generate_text("y"))
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        answer = await other
        while any(t.name == "lollms-async-call" for t in threading.enumerate()):
            await asyncio.sleep(0.001)
        return answer

    assert played(program()) == "other"


def test_leaving_a_turn_ends_it():
    async def program():
        client = client_with([Reply(["a", "b"], delay=0.01), call("add", a=1, b=2)])
        turn = client.run_turn("Go.")
        async for event in turn:
            if isinstance(event, ev.TextDelta):
                break
        await turn.aclose()
        while any(t.name == "lollms-async-turn" for t in threading.enumerate()):
            await asyncio.sleep(0.001)
        return client.client.tools.calls

    assert played(program()) == []


def test_leaving_a_turn_that_is_as_far_ahead_as_it_may_be_ends_it_too():
    """Nobody takes what it still has to say, and it has more to say than there was room for."""

    class Chatty(ScriptedLLM):
        said = 0

        def stream(self, request, cancel=None):
            while not cancel.cancelled:
                self.said += 1
                yield "x"
            for _ in range(5):  # the end of what came over the wire before the cancel did
                yield "y"

    async def program():
        client = client_with([])
        client.client.llm = Chatty([])
        turn = client.run_turn("Go.")
        for _ in range(3):  # TurnStarted, RoundStarted, the first piece
            await anext(turn)
        while client.llm.said < AHEAD + 2:
            await asyncio.sleep(0.001)
        await turn.aclose()
        while any(t.name == "lollms-async-turn" for t in threading.enumerate()):
            await asyncio.sleep(0.001)

    played(program())


def test_what_a_call_raises_is_raised_where_it_is_awaited():
    async def program():
        with pytest.raises(BackendError, match="gone"):
            await client_with([BackendError("gone")]).generate_text("x")
        with pytest.raises(BackendError, match="gone"):
            [event async for event in client_with([BackendError("gone")]).run_turn("x")]
        with pytest.raises(NotConfiguredError):
            await AsyncLollmsClient().generate_image("x")

    played(program())


def test_many_calls_wait_for_no_thread():
    async def program():
        gate = threading.Barrier(50)

        def together(request):
            gate.wait(20)
            return "ok"

        client = client_with([together] * 50)
        return await asyncio.gather(*(client.generate_text("x") for _ in range(50)))

    assert played(program()) == ["ok"] * 50


def test_the_client_is_built_and_closed_in_an_async_with_block():
    async def program():
        async with AsyncLollmsClient(user_name="Ada") as client:
            assert client.user_name == "Ada"
            assert client.remove_thinking_blocks("<think>x</think>y") == "y"
            return client.llm

    assert played(program()) is None
