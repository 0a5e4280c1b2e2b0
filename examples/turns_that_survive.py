"""A turn that is killed goes on where it was: the same work by an agent in its workspace, and in a conversation.

Run it with `python examples/turns_that_survive.py`, stop it in the middle (Ctrl-C, or `kill -9` from another terminal), and run
it again. The first run needs the model: `lollms models pull`.
"""

from pathlib import Path

from lollms_client import LollmsClient, LollmsDataManager, LollmsDiscussion
from lollms_client.lollms_personality import LollmsPersonality

TASK = "List the files here, then write how many there are into count.txt."


def as_an_agent(client: LollmsClient, workspace: Path) -> dict:
    """The agent keeps its turns below `<workspace>/.lollms/`."""
    personality = LollmsPersonality(name="clerk", system_prompt="You keep a folder in order.", workspace_path=workspace)
    if personality.has_resumable_turn():
        print("Incomplete turn detected. Resuming...")
        return personality.chat(prompt=TASK, lollms_client=client, resume_turn=True)
    return personality.chat(prompt=TASK, lollms_client=client)


def as_a_conversation(client: LollmsClient, workspace: Path) -> dict:
    """The conversation keeps its turns in a store, which many programs may share."""
    with LollmsDataManager(f"sqlite:///{workspace}/.lollms/talks.db") as store:
        known = store.list_discussions(1)
        if known:
            discussion = LollmsDiscussion(client, store, known[0]["id"])
        else:
            discussion = LollmsDiscussion.create_new(client, store, workspace_path=workspace)
        if discussion.has_resumable_turn():
            return discussion.resume_turn(streaming_callback=lambda chunk, kind: print(chunk, end="", flush=True) or True)
        return discussion.chat(TASK)


if __name__ == "__main__":
    folder = Path("survivor")
    with LollmsClient(llm_binding_name="embedded", tools_binding_name="lcp") as embedded:
        print(as_an_agent(embedded, folder)["response"])
        print(as_a_conversation(embedded, folder)["ai_message"].content)
