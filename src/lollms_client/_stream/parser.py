"""THE stream parser: what a model streams, in whatever pieces, becomes typed events.

What it promises:

- Every way of cutting a stream gives the same events, once adjacent pieces of text, thought or artefact body are joined.
- Nothing is lost: text outside obeyed tags comes out as it went in, and `close` leaves nothing behind. Only what may still become
  a tag is held back, so plain prose comes out at once.
- No thought is ever shown as text. A thought that is not closed is a thought to the end.
- Nothing is obeyed in code fences and code spans (see `lexer`), in thoughts, or in the bodies of other tags. The end of a thought
  is a tag too: in code inside the thought it counts as code.
- The work is linear in the length of the stream, whatever stands in it.

What it decides:

- Of an obeyed tag nothing is left in the text, and nothing around it is touched; only a line of `<effort …/>` and `<done/>` goes
  as a whole, with its indentation and its line break. Such a line holds nothing else (thoughts and calls that were taken out of
  it don't count) and no `|`.
- A closing tag that closes nothing, like every unknown tag, is text. Where streams begin inside a thought whose opening tag the
  server keeps, `implicit_think` says so.
- The line break directly behind `<artifact …>` belongs to the tag; else the body of an artefact is verbatim, to the first
  `</artifact>`.

Source: CONTRACT J, developer guide §5 ("Interception and State Machine").
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from ..errors import StreamError
from ..events import (
    ArtefactChunk,
    ArtefactEnd,
    ArtefactRevert,
    ArtefactStart,
    DoneTag,
    EffortChange,
    Event,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    WorkerRequest,
)
from .bare import BareCall
from .bodies import CallBody, read_worker_body
from .calls import Call, read_calls
from .deltas import Delta, FinishDelta, ReasoningDelta, ToolCallDelta
from .grammar import TAG_LIMIT, ControlTag, grammar_for, skip_space
from .lexer import CALM_CODE, CALM_HEAD, CALM_TEXT, INDENT_LIMIT, Lexer
from .native import CallAssembler
from .tags import BLANKS, TAGS, Marks, Tag, read_level

__all__ = ["ParserOptions", "StreamParser"]

_ALL_TAGS = frozenset(tag.name for tag in TAGS)
_SLICE = 4096  # long pieces are read in slices, so that going back within one stays cheap
_CALM_ELSE = -1  # what `_calm` says besides what a lexer does: `_quick` knows more
_INNER = frozenset("<>|\n")  # what may end an opening tag, or show that it is none
_AMID_OPENING = re.compile(r"\s*<\w+[\s/]").match
_QUICK_LIMIT = 250  # below the limits of every kind of tag
_QUOTE_OR_END = re.compile(r"[\"'<>]").search
_new = object.__new__  # events by the hundred a second: an attribute set on a bare object costs half of a call of __init__

@cache
def _ids() -> Iterator[str]:
    start = os.urandom(5).hex()
    return (f"call_{start}{n:x}" for n in count(1))


def _mint_id() -> str:
    """An id that no other call of this process has, nor one of another process."""
    return next(_ids())


@dataclass(frozen=True, slots=True)
class ParserOptions:
    """How a stream is to be read.

    Attributes:
        implicit_think: The stream begins inside a thought, without an opening tag.
        thinking_tags: Further pairs of markers that enclose thoughts.
        bare_json_calls: Names of the mounted tools, where a reply that is nothing but one JSON object of a call's shape is one.
        mint_id: Makes the ids of calls that come without one.
        tags: Names of the tags that are obeyed (see `tags.TAGS`).
    """

    implicit_think: bool = False
    thinking_tags: tuple[tuple[str, str], ...] = ()
    bare_json_calls: frozenset[str] | None = None
    mint_id: Callable[[], str] = _mint_id
    tags: frozenset[str] = _ALL_TAGS


_Found = tuple[int, int, Callable[[Any, list[Event]], bool], Any]
"""An obeyed tag: where the text before it ends, where it ends itself, what it does (and whether text goes on), with what."""

_HOLD: _Found = (-1, -1, lambda what, out: True, None)  # more must come before it is known whether this is a tag


class StreamParser:
    """Reads one answer of a model.

    Args:
        options: How to read it.

    Attributes:
        finish_reason: What the backend said about the end, "" until it has.
    """

    __slots__ = (
        "_add", "_again", "_artefact", "_assembler", "_at_body_start", "_bare", "_beginnings", "_body", "_calm", "_closer",
        "_final", "_grammar", "_held", "_lexer", "_mode", "_options", "_pairs", "_parts", "_quick", "_quote", "_recognise",
        "_scanned", "_sink", "_text_lexer", "_thought_lexer", "_thought_marks", "_worker", "finish_reason",
    )  # fmt: skip

    def __init__(self, options: ParserOptions = ParserOptions()) -> None:
        self._options = options
        self._grammar = grammar_for(options.tags, options.thinking_tags)
        self._assembler = CallAssembler(options.mint_id)
        self.finish_reason = ""
        self._text_lexer = Lexer(self._grammar.firsts)
        self._lexer = self._text_lexer
        self._sink: type[TextDelta] | type[ThoughtDelta] = TextDelta
        self._closer: Marks | None = None  # what ends the thought we are in
        self._recognise = self._find_tag
        self._quick: Callable[[str], list[Event] | None] = self._quick_head  # tries a short way, where `_calm` is not 0
        self._add: Callable[[str], None] = list[str]().append
        self._beginnings, self._pairs = self._grammar.openers.prefixes, self._grammar.pairs
        self._thought_marks: Marks | None = None
        self._thought_lexer = self._text_lexer
        self._mode: Callable[[str, int, list[Event]], int] = self._read_prose
        self._bare = BareCall(options.bare_json_calls) if options.bare_json_calls is not None else None
        self._calm = 0  # a piece without special characters changes nothing: what `Lexer.calm` says
        self._held = ""  # the end of the stream so far that may still become something else
        self._again = ""  # what was taken by mistake, to be read anew
        self._final = False
        self._scanned, self._quote = 0, ""  # how far an opening tag was looked at, and the quote that is open there
        self._body = CallBody(self._grammar.call_marks)
        self._artefact, self._at_body_start = "", False
        self._worker: dict[str, str] = {}
        self._parts: list[str] = []
        if options.implicit_think:
            self._open_thought(self._grammar.any_thought_closer, [])
            self._mode = self._read_implicit_head
        elif self._bare:
            self._mode = self._read_bare

    def feed(self, delta: Delta) -> list[Event]:
        """Take the next piece of the stream.

        Args:
            delta: What the backend gave.

        Returns:
            The events that are certain now.
        """
        if self._calm and delta.__class__ is str and delta:
            if self._calm == CALM_TEXT and "<" not in delta and "\n" not in delta and "`" not in delta and "\\" not in delta:
                event = _new(self._sink)
                event.text = delta
                return [event]
            done = self._quick(delta)
            if done is not None:
                return done
        out: list[Event] = []
        if isinstance(delta, str):
            self._consume(delta, out)
        else:
            self._take_native(delta, out)
        return out

    def close(self) -> list[Event]:
        """The stream has ended.

        Returns:
            The last events.
        """
        out: list[Event] = []
        self._final = True
        while True:
            self._run("", out)
            self._end_body(out)
            if not self._again:
                break
            self._read_again(out)
        out.extend(self._assembler.finish(self.finish_reason == "length"))
        return out

    # ---- driving -----------------------------------------------------------------------------------------------------------

    def _consume(self, text: str, out: list[Event]) -> None:
        if len(text) <= _SLICE:
            self._run(text, out)
            return
        for at in range(0, len(text), _SLICE):
            self._run(text[at : at + _SLICE], out)

    def _run(self, text: str, out: list[Event]) -> None:
        data = self._held + text
        self._held = ""
        pos = 0
        while pos < len(data):
            pos = self._mode(data, pos, out)
            if self._again:
                self._read_again(out)
                data, pos, self._held = self._held + data[pos:], 0, ""

    def _read_again(self, out: list[Event]) -> None:
        again, self._again = self._again, ""
        final, self._final = self._final, False
        self._consume(again, out)
        self._final = final

    def _take_native(self, delta: Delta, out: list[Event]) -> None:
        if isinstance(delta, ToolCallDelta):
            self._assembler.add(delta)
        elif isinstance(delta, ReasoningDelta):
            if self._mode == self._read_implicit_head and not self._held:
                self._close_thought(None, out)  # the backend keeps thoughts apart, so its text begins outside of them
            if delta.text:
                out.append(ThoughtDelta(delta.text))
        elif isinstance(delta, FinishDelta):
            self.finish_reason = delta.reason
        elif isinstance(delta, Usage):
            out.append(delta)
        else:
            raise StreamError(f"A stream is made of text and the types of `_stream.deltas`, not of {type(delta).__name__}.")

    # ---- short ways: pieces that change nothing ----------------------------------------------------------------------------

    def _quick_text(self, delta: str) -> list[Event] | None:
        """Amid a line of text: the line ends, or a tag may begin."""
        if "`" in delta or "\\" in delta:
            return None
        at = delta.find("<")
        if at < 0:
            at = delta.rfind("\n") + 1
            behind = delta[at:]
            if behind.strip(BLANKS):
                return None if "~" in behind else [self._sink(delta)]
            self._calm, self._quick = CALM_HEAD, self._quick_head
            self._lexer.blank = True
        elif "\n" in delta:
            return None
        else:
            behind = delta[at:]
            if behind not in self._beginnings:
                return [self._sink(delta)] if behind[:2] not in self._pairs and "<" not in behind[1:] else None
            self._calm, self._quick = _CALM_ELSE, self._quick_beginning
        self._held = behind
        return [self._sink(delta[:at])] if at else []

    def _quick_beginning(self, delta: str) -> list[Event] | None:
        """The beginning of a tag is held: it goes on, or the tag is complete."""
        held = self._held + delta
        if held in self._beginnings:
            self._held = held
            return []
        if held[0] != "<" or ">" not in delta:
            return None
        self._lexer.line = 0
        found = self._recognise(held, 0)
        if found is _HOLD:
            return None
        self._scanned = 0
        if found is None:
            return None
        _, stop, act, what = found
        out: list[Event] = []
        self._held, self._calm = "", 0
        if act(what, out):
            self._rest_in(self._lexer)
        rest = held[stop:]
        return out + self.feed(rest) if rest else out

    def _quick_opening(self, delta: str) -> list[Event] | None:
        """An opening tag is held up to amid its attributes, and goes on."""
        if _INNER.isdisjoint(delta) and len(self._held) < _QUICK_LIMIT:
            self._held += delta
            return []
        return None

    def _quick_head(self, delta: str) -> list[Event] | None:
        """At the head of a line comes white space, or plain text."""
        if "<" in delta or "\n" in delta or "`" in delta or "\\" in delta or "~" in delta:
            return None
        held = self._held + delta
        if not delta.strip(BLANKS):
            if len(held) > INDENT_LIMIT:
                return None
            self._held = held
            return []
        self._held = ""
        self._lexer.blank = False
        self._calm, self._quick = CALM_TEXT, self._quick_text
        return [self._sink(held)]

    def _quick_code(self, delta: str) -> list[Event] | None:
        """Amid a line of fenced code."""
        return [self._sink(delta)] if "\n" not in delta else None

    def _quick_artefact(self, delta: str) -> list[Event] | None:
        """Amid the body of an artefact."""
        return [ArtefactChunk(self._artefact, delta)] if "<" not in delta else None

    def _quick_body(self, delta: str) -> list[Event] | None:
        """Amid a body that is read whole."""
        if ">" in delta:
            return None
        self._add(delta)
        return []

    # ---- text and thoughts -------------------------------------------------------------------------------------------------

    def _read_prose(self, data: str, pos: int, out: list[Event]) -> int:
        start, end = pos, len(data)
        while True:
            lexer = self._lexer
            at = lexer.find(data, pos)
            if at == end:
                keep = lexer.line if lexer.blank and not self._final else end
                self._rest_in(lexer)
                break
            found = self._recognise(data, at)
            if found is _HOLD:
                keep = lexer.line if lexer.blank else at
                self._calm = _CALM_ELSE
                self._quick = self._quick_opening if _AMID_OPENING(data, keep) else self._quick_beginning
                break
            self._scanned = 0
            if found is None:
                lexer.blank = False
                pos = at + 1
                continue
            cut, stop, act, what = found
            if cut > start:
                self._say(data[start:cut], out)
            if not act(what, out):
                self._calm = 0
                return stop
            start = pos = stop
        if keep > start:
            self._say(data[start:keep], out)
        self._held = data[keep:]
        return end

    def _rest_in(self, lexer: Lexer) -> None:
        """Nothing is open: note which pieces would change nothing."""
        self._calm = calm = lexer.calm()
        if calm == CALM_TEXT:
            self._quick = self._quick_text
        elif calm == CALM_HEAD:
            self._quick = self._quick_head
            if self._bare:
                self._calm = 0
        elif calm == CALM_CODE:
            self._quick = self._quick_code

    def _say(self, text: str, out: list[Event]) -> None:
        event = _new(self._sink)
        event.text = text
        out.append(event)
        if self._bare and self._closer is None and not text.isspace():
            self._bare = None  # something was said, so the reply is no bare call

    def _find_tag(self, data: str, at: int) -> _Found | None:
        """Which tag of the text begins at `at`: a tag, None, or `_HOLD`."""
        grammar, lexer = self._grammar, self._lexer
        if data[at : at + 2] not in grammar.pairs:
            return None
        if lexer.blank and data[at + 1 : at + 2] in grammar.control.heads:
            line = grammar.control.read(data, lexer.line, at, self._final)
            if line is None:
                return _HOLD
            if line:
                return lexer.line, line[1], self._obey_controls, line[0]
        hit = grammar.openers.match(data, at)
        if hit is None:
            return _HOLD if not self._final and grammar.openers.viable(data, at) else None
        tag, closer = grammar.opener(hit[0])
        if closer is not None:
            return at, hit.end(), self._open_thought, closer
        if tag.attributes:
            return self._find_opening(tag, data, at, hit.end())
        return at, hit.end(), self._open_call, None

    def _find_opening(self, tag: Tag, data: str, at: int, name_end: int) -> _Found | None:
        """Read an opening tag with attributes."""
        stop = self._scan_opening(data, at, name_end)
        if stop == 0 or (stop or len(data)) - at > TAG_LIMIT:
            return None
        leads = None if stop is None else self._grammar.leads(tag, data, stop)
        if stop is None or leads is None:
            return None if self._final else _HOLD
        opening = self._grammar.read_opening(tag, data[at:stop]) if leads else None
        if opening is None:
            return None
        attributes, closes = opening
        if tag.body == "artefact":
            return at, stop, self._open_artefact, opening
        if tag.body == "worker":
            return at, stop, self._open_worker, attributes
        return (at, stop, self._revert, attributes) if closes else None

    def _scan_opening(self, data: str, at: int, name_end: int) -> int | None:
        """Where the opening tag ends, None where `data` ends first, 0 where it is none; goes on where it left off."""
        pos, quote = (at + self._scanned, self._quote) if self._scanned else (name_end, "")
        while True:
            if quote:
                pos = data.find(quote, pos) + 1
                if not pos:
                    break
                quote = ""
            hit = _QUOTE_OR_END(data, pos)
            if hit is None:
                break
            if hit[0] == ">":
                self._scanned, self._quote = hit.start() - at, ""
                return hit.end()
            if hit[0] == "<":
                return 0
            quote, pos = hit[0], hit.end()
        self._scanned, self._quote = len(data) - at, quote
        return None

    def _obey_controls(self, tags: list[ControlTag], out: list[Event]) -> bool:
        for name, attributes, body in tags:
            out.append(DoneTag() if name == "done" else EffortChange(read_level(attributes, body)))
        return True

    def _revert(self, attributes: dict[str, str], out: list[Event]) -> bool:
        out.append(ArtefactRevert(attributes.get("name") or attributes.get("title", ""), attributes.get("version", "")))
        return True

    # ---- thoughts ----------------------------------------------------------------------------------------------------------

    def _open_thought(self, closer: Marks, out: list[Event]) -> bool:
        if closer is not self._thought_marks:
            self._thought_marks = closer
            self._thought_lexer = Lexer(closer.firsts)
        self._thought_lexer.blank = True  # where a thought ends its lexer is amid a plain line, so all else is as new
        self._lexer = self._thought_lexer
        self._closer = closer
        self._beginnings, self._pairs = closer.prefixes, closer.pairs
        self._recognise = self._find_thought_end
        self._sink = ThoughtDelta
        return True

    def _close_thought(self, _: None, out: list[Event]) -> bool:
        self._closer = None
        self._recognise = self._find_tag
        self._sink = TextDelta
        self._lexer = self._text_lexer
        self._beginnings, self._pairs = self._grammar.openers.prefixes, self._grammar.pairs
        self._mode = self._read_bare if self._bare else self._read_prose
        return not self._bare

    def _find_thought_end(self, data: str, at: int) -> _Found | None:
        closer = self._closer or self._grammar.any_thought_closer
        if data[at : at + 2] not in closer.pairs:
            return None
        end = closer.match(data, at)
        if end is not None:
            return at, end.end(), self._close_thought, None
        return _HOLD if not self._final and closer.viable(data, at) else None

    def _read_implicit_head(self, data: str, pos: int, out: list[Event]) -> int:
        """The stream begins inside a thought; an opening tag that comes all the same is taken for what it is."""
        head = skip_space(data, pos)
        openers = self._grammar.openers
        if head - pos <= INDENT_LIMIT and not self._final and (head == len(data) or openers.viable(data, head)):
            self._held = data[pos:]
            return len(data)
        opener = openers.match(data, head) if head - pos <= INDENT_LIMIT else None
        self._mode = self._read_prose
        if opener:
            closer = self._grammar.opener(opener[0])[1]
            if closer is not None:
                self._open_thought(closer, out)
                return opener.end()
        return pos

    # ---- bodies ------------------------------------------------------------------------------------------------------------

    def _open_call(self, _: None, out: list[Event]) -> bool:
        self._bare = None
        self._body = CallBody(self._grammar.call_marks)
        self._add = self._body.add
        self._mode = self._read_call
        return False

    def _read_call(self, data: str, pos: int, out: list[Event]) -> int:
        body = self._body
        pos = body.feed(data, pos, self._final)
        if body.ended:
            self._end_call(True, out)
            return pos
        self._held = data[pos:]
        self._calm = _CALM_ELSE if body.calm and not self._held else 0
        self._quick = self._quick_body
        return len(data)

    def _end_call(self, closed: bool, out: list[Event]) -> None:
        body = self._body
        for call in read_calls(body.text, closed, body.value):
            self._call(call, body.text, "tag", out)
        self._again = body.rest
        self._calm = 0
        self._mode = self._read_prose

    def _call(self, call: Call, raw: str, dialect: str, out: list[Event]) -> None:
        name, arguments, problem = call
        out.append(ToolCall(name, arguments, self._options.mint_id(), raw, problem, dialect))

    def _open_artefact(self, opening: tuple[dict[str, str], bool], out: list[Event]) -> bool:
        attributes, closes = opening
        self._artefact = attributes.get("name") or attributes.get("title", "")
        out.append(ArtefactStart(self._artefact, attributes.get("type", ""), attributes.get("language", ""), attributes))
        if closes:
            out.append(ArtefactEnd(self._artefact))
            return True
        self._at_body_start = True
        self._mode = self._read_artefact
        return False

    def _read_artefact(self, data: str, pos: int, out: list[Event]) -> int:
        if self._at_body_start:
            if data[pos:] == "\r" and not self._final:
                self._held = "\r"
                return len(data)
            self._at_body_start = False
            pos += 2 if data.startswith("\r\n", pos) else data.startswith("\n", pos)
        closer = self._grammar.artefact_closer
        end = closer.search(data, pos)
        stop = end.start() if end else len(data) if self._final else closer.tail(data, pos)
        if stop > pos:
            chunk = _new(ArtefactChunk)
            chunk.name, chunk.text = self._artefact, data[pos:stop]
            out.append(chunk)
        if end:
            out.append(ArtefactEnd(self._artefact))
            self._mode = self._read_prose
            self._calm = 0
            return end.end()
        self._held = data[stop:]
        self._calm = 0 if self._held else _CALM_ELSE
        self._quick = self._quick_artefact
        return len(data)

    def _open_worker(self, attributes: dict[str, str], out: list[Event]) -> bool:
        self._worker, self._parts = attributes, []
        self._mode = self._read_worker
        return False

    def _read_worker(self, data: str, pos: int, out: list[Event]) -> int:
        closer = self._grammar.worker_closer
        end = closer.search(data, pos)
        stop = end.start() if end else len(data) if self._final else closer.tail(data, pos)
        self._parts.append(data[pos:stop])
        if end:
            self._end_worker(True, out)
            return end.end()
        self._held = data[stop:]
        return len(data)

    def _end_worker(self, complete: bool, out: list[Event]) -> None:
        task, files = read_worker_body("".join(self._parts))
        out.append(WorkerRequest(self._worker.get("name", ""), task, files, self._worker, complete))
        self._mode = self._read_prose

    def _read_bare(self, data: str, pos: int, out: list[Event]) -> int:
        bare = self._bare
        if bare is None or (not bare.text and (head := skip_space(data, pos)) < len(data) and data[head] not in "{`~"):
            self._mode = self._read_prose
            return pos
        if not bare.feed(data[pos:]):
            self._give_up_bare(bare)
        return len(data)

    def _give_up_bare(self, bare: BareCall) -> None:
        self._bare = None
        self._again = bare.text
        self._mode = self._read_prose

    def _end_body(self, out: list[Event]) -> None:
        """The stream ends inside a body."""
        if self._mode == self._read_call:
            self._end_call(self._body.close(), out)
        elif self._mode == self._read_artefact:
            out.append(ArtefactEnd(self._artefact, complete=False))
            self._mode = self._read_prose
        elif self._mode == self._read_worker:
            self._end_worker(False, out)
        elif self._mode == self._read_bare and self._bare:
            bare = self._bare
            call = bare.finish()
            if call is None:
                self._give_up_bare(bare)
            else:
                self._call(call, bare.text, "bare_json", out)
                self._bare, self._mode = None, self._read_prose
