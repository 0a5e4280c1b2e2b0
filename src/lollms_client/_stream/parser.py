"""THE stream parser: what a model streams, in whatever pieces, becomes typed events.

What it promises:

- Every way of cutting a stream gives the same events, once adjacent pieces of text, thought or artefact body are joined.
- Nothing is lost: text outside obeyed tags comes out as it went in, and `close` leaves nothing behind. Only what may still become
  a tag is held back, so plain prose comes out at once.
- No thought is ever shown as text. A thought that is not closed is a thought to the end.
- Nothing is obeyed in code fences and code spans (see `lexer`), in thoughts, or in the bodies of other tags. The end of a thought
  is a tag too: in code inside the thought it counts as code. But models leave fences open when they stop thinking, and an answer
  must not be taken for a thought: an end inside a fence counts if no line closes that fence before the next fence, or ever.
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

import re
from collections.abc import Callable
from typing import Any

from ..errors import StreamError
from ..events import (
    ArtefactEnd,
    ArtefactRevert,
    ArtefactStart,
    DoneTag,
    EffortChange,
    Event,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from .bare import BARE_FIRSTS, BareBody
from .bodies import ArtefactBody, Body, WorkerBody
from .call_body import CallBody
from .deltas import Delta, FinishDelta, ReasoningDelta, SignedDelta, ToolCallDelta
from .grammar import TAG_LIMIT, ControlTag, grammar_for, read_opening, skip_space
from .lexer import CALM_CODE, CALM_HEAD, CALM_TEXT, INDENT_LIMIT, Lexer
from .native import CallAssembler
from .options import ParserOptions
from .suspect import SuspectEnd
from .tags import BLANKS, Marks, Tag, read_level

__all__ = ["ParserOptions", "StreamParser"]

_SLICE = 4096  # long pieces are read in slices, so that going back within one stays cheap
_CALM_ELSE = -1  # what `_calm` says besides what a lexer does: `_quick` knows more
_QUICK_LIMIT = 250  # below the limits of every kind of tag
_INNER = frozenset("<>|\n")  # what may end an opening tag, or show that it is none
_QUOTE_OR_END = re.compile(r"[\"'<>]").search
_new = object.__new__  # events by the hundred a second: an attribute set on a bare object costs half of a call of __init__

_Found = tuple[int, int, Callable[[Any, list[Event]], None], Any]
"""An obeyed tag: where the text before it ends, where it ends itself, what it does, with what."""

_HOLD: _Found = (-1, -1, lambda what, out: None, None)  # more must come before it is known whether this is a tag


class StreamParser:
    """Reads one answer of a model.

    Args:
        options: How to read it; as `ParserOptions` has it where None.

    Attributes:
        finish_reason: What the backend said about the end, "" until it has.
    """

    __slots__ = (
        "_again", "_assembler", "_awaited", "_bare", "_beginnings", "_body", "_calm", "_closer", "_final", "_grammar", "_held",
        "_lexer", "_may_begin", "_mode", "_options", "_quick", "_quote", "_recognise", "_scanned", "_sink", "_text_lexer",
        "_thought_lexer", "_thought_marks", "finish_reason",
    )  # fmt: skip

    def __init__(self, options: ParserOptions | None = None) -> None:
        self._options = options = options or ParserOptions()
        self._grammar = grammar = grammar_for(options.tags, options.thinking_tags)
        self._assembler = CallAssembler(options.mint_id)
        self.finish_reason = ""
        # where we are
        self._mode: Callable[[str, int, list[Event]], int] = self._read_prose
        self._held = ""  # the end of the stream so far that may still become something else
        self._again = ""  # what a body took beyond its end, to be read anew
        self._final = False
        self._body: Body | None = None
        self._bare = options.bare_json_calls is not None  # nothing was said yet, so the reply may be a bare call
        # the text, or the thought, that we are in
        self._text_lexer = self._thought_lexer = self._lexer = Lexer(grammar.firsts)
        self._thought_marks: Marks | None = None  # what the thoughts' lexer was made for
        self._sink: type[TextDelta] | type[ThoughtDelta] = TextDelta
        self._closer: Marks | None = None  # what ends the thought
        self._recognise = self._find_tag
        self._beginnings, self._may_begin = grammar.openers.prefixes, grammar.may_begin
        # an opening tag that is not all there
        self._awaited = self._beginnings  # what it may grow through
        self._scanned, self._quote = 0, ""  # how far its attributes were looked at, and the quote that is open there
        # short ways, for pieces that change little
        self._calm = 0  # what `Lexer.calm` says, or `_CALM_ELSE`; 0 where there is no short way
        self._quick: Callable[[str], list[Event] | None] = self._quick_line
        if options.implicit_think:
            self._open_thought(grammar.any_thought_closer, [])
            self._mode = self._read_implicit_head
        elif self._bare:
            self._mode = self._read_bare_head

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
        if not isinstance(delta, str):
            self._take_native(delta, out)
        elif len(delta) <= _SLICE:
            self._run(delta, out)
        else:
            self._run_in_slices(delta, out)
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
            if self._body:
                self._body.close(out)
                self._end_body(self._body)
            if not self._again:
                break
            self._run_again(out)
        out.extend(self._assembler.finish(self.finish_reason == "length"))
        return out

    # ---- driving -----------------------------------------------------------------------------------------------------------

    def _run(self, text: str, out: list[Event]) -> None:
        data, self._held = self._held + text, ""
        pos = 0
        while pos < len(data):
            pos = self._mode(data, pos, out)
            if self._again:
                self._run_again(out)
                data, pos, self._held = self._held + data[pos:], 0, ""

    def _run_again(self, out: list[Event]) -> None:
        again, self._again = self._again, ""
        final, self._final = self._final, False
        self._run_in_slices(again, out)
        self._final = final

    def _run_in_slices(self, text: str, out: list[Event]) -> None:
        for at in range(0, len(text), _SLICE):
            self._run(text[at : at + _SLICE], out)

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
        elif not isinstance(delta, SignedDelta):  # nobody reads those
            raise StreamError(f"A stream is made of text and the types of `_stream.deltas`, not of {type(delta).__name__}.")

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
                self._rest_in_opening(data, keep)
                break
            self._scanned = 0
            if found is None:
                lexer.reject()
                pos = at + 1
                continue
            cut, stop, act, what = found
            if cut > start:
                self._say(data[start:cut], out)
            self._calm = 0
            act(what, out)
            if self._mode != self._read_prose:
                return stop
            start = pos = stop
        if keep > start:
            self._say(data[start:keep], out)
        self._held = data[keep:]
        return end

    def _say(self, text: str, out: list[Event]) -> None:
        event = _new(self._sink)
        event.text = text
        out.append(event)
        if self._bare and self._closer is None and not text.isspace():
            self._bare = False

    def _rest_in(self, lexer: Lexer) -> None:
        """No tag is open: note which pieces would change little."""
        self._calm = calm = lexer.calm()
        if calm == CALM_CODE:
            self._quick = self._quick_code
        else:
            self._quick = self._quick_line
            if self._bare and calm == CALM_HEAD:
                self._calm = 0

    def _rest_in_opening(self, data: str, keep: int) -> None:
        """An opening tag may have begun."""
        self._calm = _CALM_ELSE
        if self._closer is None and self._grammar.is_amid(data[keep:].lstrip(BLANKS), self._lexer.blank):
            self._quick = self._quick_opening
            return
        self._quick = self._quick_beginning
        self._awaited = self._grammar.beginnings if self._lexer.blank and not self._closer else self._beginnings

    # ---- tags --------------------------------------------------------------------------------------------------------------

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
        opening = read_opening(tag, data[name_end : stop - 1]) if leads else None
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

    def _obey_controls(self, tags: list[ControlTag], out: list[Event]) -> None:
        for name, attributes, body in tags:
            out.append(DoneTag() if name == "done" else EffortChange(read_level(attributes, body)))

    def _revert(self, attributes: dict[str, str], out: list[Event]) -> None:
        out.append(ArtefactRevert(attributes.get("name") or attributes.get("title", ""), attributes.get("version", "")))

    # ---- thoughts ----------------------------------------------------------------------------------------------------------

    def _open_thought(self, closer: Marks, out: list[Event]) -> None:
        if closer is not self._thought_marks:
            self._thought_marks = closer
            self._thought_lexer = Lexer(closer.firsts, watch_code=True)
        self._thought_lexer.blank = True  # where a thought ends its lexer is amid a plain line, so all else is as new
        self._lexer = self._thought_lexer
        self._sink = ThoughtDelta
        self._closer = closer
        self._recognise = self._find_thought_end
        self._beginnings, self._may_begin = closer.prefixes, closer.may_begin

    def _close_thought(self, _: None, out: list[Event]) -> None:
        grammar = self._grammar
        self._lexer = self._text_lexer
        self._sink = TextDelta
        self._closer = None
        self._recognise = self._find_tag
        self._beginnings, self._may_begin = grammar.openers.prefixes, grammar.may_begin
        self._mode = self._read_bare_head if self._bare else self._read_prose

    def _find_thought_end(self, data: str, at: int) -> _Found | None:
        closer = self._closer or self._grammar.any_thought_closer
        if data[at : at + 2] not in closer.pairs:
            return None
        end = closer.match(data, at)
        if end is not None:
            lexer = self._lexer
            if not lexer.in_code:
                return at, end.end(), self._close_thought, None
            return at, end.end(), self._break_off_thought if lexer.closes() else self._suspect_thought_end, end[0]
        return _HOLD if not self._final and closer.viable(data, at) else None

    def _break_off_thought(self, _: str | None, out: list[Event]) -> None:
        """The thought ends although its fence was not closed by a line of its own."""
        self._close_thought(None, out)
        self._thought_marks = None  # its lexer is still inside

    def _suspect_thought_end(self, tag: str, out: list[Event]) -> None:
        self._begin_body(SuspectEnd(tag, self._lexer, lambda events: self._break_off_thought(None, events)))

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

    def _open_call(self, _: None, out: list[Event]) -> None:
        self._begin_body(CallBody(self._grammar.call_marks, self._options.mint_id))

    def _open_artefact(self, opening: tuple[dict[str, str], bool], out: list[Event]) -> None:
        attributes, closes = opening
        name = attributes.get("name") or attributes.get("title", "")
        out.append(ArtefactStart(name, attributes.get("type", ""), attributes.get("language", ""), attributes))
        if closes:
            out.append(ArtefactEnd(name))
        else:
            self._begin_body(ArtefactBody(name, self._grammar.artefact_closer))

    def _open_worker(self, attributes: dict[str, str], out: list[Event]) -> None:
        self._begin_body(WorkerBody(attributes, self._grammar.worker_closer))

    def _read_bare_head(self, data: str, pos: int, out: list[Event]) -> int:
        """Nothing was said yet: see whether the reply begins as a bare call does."""
        head = skip_space(data, pos)
        if head == len(data) and head - pos <= INDENT_LIMIT and not self._final:
            self._held = data[pos:]
            return head
        self._mode = self._read_prose
        if data[head : head + 1] in BARE_FIRSTS and head - pos <= INDENT_LIMIT:
            self._begin_body(BareBody(self._options.bare_json_calls or frozenset(), self._options.mint_id))
        return pos

    def _begin_body(self, body: Body) -> None:
        self._bare = self._bare and self._closer is not None
        self._body = body
        self._mode = self._read_body
        self._calm, self._quick = _CALM_ELSE, body.quick

    def _read_body(self, data: str, pos: int, out: list[Event]) -> int:
        body = self._body
        if body is None:
            return pos
        pos = body.read(data, pos, self._final, out)
        if body.ended:
            self._end_body(body)
            return pos
        self._held = data[pos:]
        self._calm = _CALM_ELSE
        self._quick = self._quick_closing if self._held else body.quick
        return len(data)

    def _end_body(self, body: Body) -> None:
        self._again = body.again
        self._body = None
        self._mode = self._read_bare_head if self._bare and self._closer is None else self._read_prose
        self._calm = 0

    # ---- short ways: pieces that change little -----------------------------------------------------------------------------

    def _quick_line(self, delta: str) -> list[Event] | None:
        """Text goes on, within its line or with new ones; white space at a line's head is held."""
        if "`" in delta or "\\" in delta or "~" in delta:
            return None
        if "<" in delta and (hit := self._may_begin(delta)):
            return self._quick_angle(delta, hit.start())
        at = delta.rfind("\n") + 1
        behind = delta[at:]
        if behind.strip(BLANKS):
            text, self._held = self._held + delta, ""
            self._lexer.blank = False
            self._calm = CALM_TEXT
        else:
            self._lexer.blank = True
            self._calm = CALM_HEAD
            if not at:
                behind = self._held + delta
                if len(behind) > INDENT_LIMIT:
                    return None
                self._held = behind
                return []
            text, self._held = self._held + delta[:at], behind
        event = _new(self._sink)
        event.text = text
        return [event]

    def _quick_angle(self, delta: str, at: int) -> list[Event] | None:
        """A tag may begin at `at`, which is not all there."""
        line = delta.rfind("\n", 0, at) + 1
        at_head = (line > 0 or self._calm == CALM_HEAD) and not delta[line:at].strip(BLANKS)
        awaited = self._grammar.beginnings if at_head and self._closer is None else self._beginnings
        if delta[at:] not in awaited or len(self._held) > _QUICK_LIMIT:
            return None
        cut = line if at_head else at
        text, self._held = (self._held + delta[:cut], delta[cut:]) if cut else ("", self._held + delta)
        self._lexer.blank = at_head
        self._calm, self._quick, self._awaited = _CALM_ELSE, self._quick_beginning, awaited
        return [self._sink(text)] if text else []

    def _quick_code(self, delta: str) -> list[Event] | None:
        """A line of fenced code goes on."""
        if not self._lexer.pass_calm_code(delta):
            return None
        event = _new(self._sink)
        event.text = delta
        return [event]

    def _quick_beginning(self, delta: str) -> list[Event] | None:
        """The beginning of a tag is held: it goes on, or is complete, or is none."""
        held = self._held + delta
        if held in self._awaited:
            self._held = held
            return []
        lexer = self._lexer
        if held[0] != "<" or self._bare or not lexer.only_angles:
            return None
        if ">" in delta:
            return self._settle(held)
        if self._closer is None and _INNER.isdisjoint(delta) and self._grammar.is_amid(held, lexer.blank):
            self._held = held
            self._quick = self._quick_opening
            return []
        if self._may_begin(held) or lexer.in_code or "\n" in delta or "`" in delta or "\\" in delta:
            return None
        self._held, self._calm, self._quick = "", CALM_TEXT, self._quick_line
        lexer.blank = False
        return [self._sink(held)]

    def _quick_opening(self, delta: str) -> list[Event] | None:
        """An opening tag is held up to amid its attributes: it goes on, or ends."""
        if len(self._held) > _QUICK_LIMIT:
            return None
        if _INNER.isdisjoint(delta):
            self._held += delta
            return []
        return self._quick_waiting(delta)

    def _quick_waiting(self, delta: str) -> list[Event] | None:
        """What is held may be a tag, but it depends on what follows."""
        held = self._held + delta
        return None if held[0] != "<" or self._bare else self._settle(held)

    def _settle(self, held: str) -> list[Event] | None:
        """Look at all that is held, from the beginning of its tag."""
        self._lexer.line = 0
        found = self._recognise(held, 0)
        if found is _HOLD:
            self._held, self._quick = held, self._quick_waiting
            return []
        self._scanned = 0
        if found is None:
            return None
        _, stop, act, what = found
        out: list[Event] = []
        self._held, self._calm = "", 0
        act(what, out)
        if self._mode == self._read_prose:
            self._rest_in(self._lexer)
        rest = held[stop:]
        return out + self.feed(rest) if rest else out

    def _quick_closing(self, delta: str) -> list[Event] | None:
        """The beginning of a body's closing tag is held, and goes on."""
        held = self._held + delta
        if self._body is None or held not in self._body.beginnings:
            return None
        self._held = held
        return []
