"""The enumerations that programs written for this API use. Source: CONTRACT C and I."""

from __future__ import annotations

from enum import Enum

__all__ = ["ELF_COMPLETION_FORMAT", "MSG_TYPE", "EventMode"]


class MSG_TYPE(Enum):  # noqa: N801 - the documented name
    """What a streaming callback receives. Values are fixed by CONTRACT I."""

    MSG_TYPE_CHUNK = 0
    MSG_TYPE_CONTENT = 1
    MSG_TYPE_CONTENT_INVISIBLE_TO_AI = 2
    MSG_TYPE_CONTENT_INVISIBLE_TO_USER = 3
    MSG_TYPE_THOUGHT_CHUNK = 4
    MSG_TYPE_THOUGHT_CONTENT = 5
    MSG_TYPE_EXCEPTION = 6
    MSG_TYPE_WARNING = 7
    MSG_TYPE_INFO = 8
    MSG_TYPE_STEP = 9
    MSG_TYPE_STEP_START = 10
    MSG_TYPE_STEP_PROGRESS = 11
    MSG_TYPE_STEP_END = 12
    MSG_TYPE_JSON_INFOS = 13
    MSG_TYPE_REF = 14
    MSG_TYPE_CODE = 15
    MSG_TYPE_UI = 16
    MSG_TYPE_NEW_MESSAGE = 17
    MSG_TYPE_FINISHED_MESSAGE = 18
    MSG_TYPE_TOOL_CALL = 19
    MSG_TYPE_TOOL_OUTPUT = 20
    MSG_TYPE_REASONING = 21
    MSG_TYPE_SCRATCHPAD = 22
    MSG_TYPE_OBSERVATION = 23
    MSG_TYPE_ERROR = 24
    MSG_TYPE_GENERATING_TITLE_START = 25
    MSG_TYPE_GENERATING_TITLE_END = 26
    MSG_TYPE_SOURCES_LIST = 27
    MSG_TYPE_INIT_PROGRESS = 28
    MSG_TYPE_ARTEFACTS_STATE_CHANGED = 29
    MSG_TYPE_TOOLS_LIST = 30
    MSG_TYPE_CONTEXT_COMPRESSION = 31
    MSG_TYPE_ARTEFACT_CHUNK = 38
    MSG_TYPE_ARTEFACT_DONE = 39
    MSG_TYPE_TOOL_START = 50
    MSG_TYPE_TOOL_END = 51
    MSG_TYPE_ARTEFACT_BUILD_START = 52
    MSG_TYPE_ARTEFACT_BUILD_END = 53
    MSG_TYPE_CONTEXT_UPDATE = 54
    MSG_TYPE_ARTEFACT_SYMBOL_DETECTED = 55
    MSG_TYPE_ROUND_START = 57
    MSG_TYPE_ROUND_END = 58
    MSG_TYPE_WORKER_SPAWN_START = 59
    MSG_TYPE_WORKER_SPAWN_END = 60


class ELF_COMPLETION_FORMAT(Enum):  # noqa: N801 - the documented name
    """How a backend wants its prompt: one text, or a list of messages."""

    Instruct = 0
    Chat = 1


class EventMode(Enum):
    """How much of a turn's events a callback receives."""

    PROCESSING_TAG = 0
    FULL_CALLBACK = 1
    MIXED = 2
    SILENT = 3
