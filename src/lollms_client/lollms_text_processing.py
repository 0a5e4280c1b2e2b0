"""`LollmsTextProcessor`: tasks on texts, with a language model. Source: CONTRACT C and D, developer guide §4.

Every task takes what `generate_text` takes as further keywords (`temperature`, `n_predict`, `think`, `system_prompt`, ...), for
each of its requests. A callback is `cb(chunk, msg_type, params, metadata)` of two to four parameters: steps come as
`MSG_TYPE_STEP_START`, `_PROGRESS` and `_END`, the pieces of the result as `MSG_TYPE_CHUNK`. False stops, and what was made is
returned; where that is no whole answer (yes or no, a choice, an object), CancelledError is raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ._tasks.ask import Asker, Generator

__all__ = ["LollmsTextProcessor"]

M = TypeVar("M")
Callback = Callable[..., Any]


class LollmsTextProcessor:
    """Tasks on texts.

    Args:
        llm: What generates: a language model binding, or anything like one.
    """

    def __init__(self, llm: Generator) -> None:
        self._llm = llm

    def generator(self) -> Generator:
        """What generates; a subclass may choose it anew for each call."""
        return self._llm

    def thinking_tags(self) -> tuple[tuple[str, str], ...]:
        """Pairs of markers, besides the usual ones, that enclose the model's thoughts."""
        return self.generator().capabilities.thinking_tags

    def _asker(self, options: Mapping[str, Any], callback: Callback | None = None, ctx_size: int | None = None) -> Asker:
        from ._tasks.ask import Asker

        return Asker(self.generator(), options, callback, ctx_size)

    # ---- long texts -----------------------------------------------------------------------------------------------------------

    def sequential_summarize(
        self,
        text: str,
        summary_context: str = "",
        task: str = "Summarize the text: its subject, its main points, and the names, dates and numbers that matter.",
        format: str = "bullet points",  # noqa: A002 - the documented name
        tone: str = "neutral",
        ctx_size: int | None = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> str:
        """Summarizes a text of any length, piece by piece; each step carries the summary on.

        Args:
            text: The text.
            summary_context: What is known about it, told at each step.
            task: What to do.
            format: The form of the summary, in words.
            tone: Its tone.
            ctx_size: Tokens of context to use at most, None for all that the model has.
            callback: Told of the steps and of the last summary's pieces; False stops.
            **options: Options of `generate_text`.

        Returns:
            The summary, "" of an empty text; the summary so far, where the callback stopped.

        Raises:
            ConfigurationError: The context is too small for the instructions.
            LollmsError: The model failed.
        """
        from ._tasks.summarize import summarize

        return summarize(self._asker(options, callback, ctx_size), text, summary_context, task, format, tone)

    def deep_analyze(
        self,
        query: str,
        text: str | None = None,
        files: Sequence[str | os.PathLike[str]] | None = None,
        aggregation_prompt: str | None = None,
        output_format: str = "markdown",
        ctx_size: int | None = None,
        chunk_size: int | None = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> str:
        """Answers a query from a text and files of any length: notes on each piece, then an answer from the notes.

        Args:
            query: What to find out.
            text: A text.
            files: Paths of text files (UTF-8).
            aggregation_prompt: How to make the answer from what was found; None for an answer from nothing but that.
            output_format: The form of the answer, in words.
            ctx_size: Tokens of context to use at most, None for all that the model has.
            chunk_size: Tokens of a piece at most, None for what there is room for.
            callback: Told of the steps and of the answer's pieces; False stops.
            **options: Options of `generate_text`.

        Returns:
            The answer; the notes so far, where the callback stopped before it.

        Raises:
            ConfigurationError: There is nothing to read, or the context is too small for the query.
            PathError: A file is not there, or is no text.
            LollmsError: The model failed.
        """
        from ._tasks.analyze import analyze, documents_of

        documents = documents_of(text, files)
        asker = self._asker(options, callback, ctx_size)
        return analyze(asker, query, documents, chunk_size, output_format, aggregation_prompt or "")

    def long_context_processing(
        self,
        text_to_process: str,
        contextual_prompt: str,
        processing_type: str = "text",
        schema: Mapping[str, Any] | None = None,
        ctx_size: int | None = None,
        chunk_size: int | None = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> str | dict[str, Any] | bool:
        """Does what a prompt asks with a text of any length.

        Args:
            text_to_process: The text.
            contextual_prompt: What to find in it or to make of it.
            processing_type: "text", "structured" or "yes_no".
            schema: The structure of the answer, for "structured": JSON Schema, or the short form.
            ctx_size: Tokens of context to use at most, None for all that the model has.
            chunk_size: Tokens of a piece at most, None for what there is room for.
            callback: Told of the steps and of the result's pieces; False stops.
            **options: Options of `generate_text`.

        Returns:
            The answer as a str ("text"), a dict that is valid against the schema ("structured") or a bool ("yes_no").

        Raises:
            ConfigurationError: There is no text, no such type, no schema where one is needed, or too small a context.
            BackendProtocolError: The model's answers could not be read.
            CancelledError: The callback stopped before there was a whole answer.
        """
        from ._tasks.analyze import process_long

        asker = self._asker(options, callback, ctx_size)
        return process_long(asker, text_to_process, contextual_prompt, processing_type, schema, chunk_size)

    # ---- questions ------------------------------------------------------------------------------------------------------------

    def yes_no(
        self, question: str, context: str = "", return_explanation: bool = False, callback: Callback | None = None, **options: Any
    ) -> bool | dict[str, Any]:
        """Answers a question with yes or no.

        Args:
            question: The question.
            context: The text that it is about.
            return_explanation: Whether to explain.
            callback: Told of the pieces of the answer; False stops.
            **options: Options of `generate_text`.

        Returns:
            True for yes; with `return_explanation`, `{"answer": bool, "explanation": str}`.

        Raises:
            BackendProtocolError: The model's answers were neither.
            CancelledError: The callback stopped before there was a whole answer.
        """
        from ._tasks.data import given
        from ._tasks.questions import yes_or_no

        found = yes_or_no(self._asker(options, callback), question, given(context), return_explanation)
        return found if return_explanation else bool(found["answer"])

    def multichoice_question(
        self,
        question: str,
        possible_answers: Sequence[str],
        context: str = "",
        return_explanation: bool = False,
        callback: Callback | None = None,
        **options: Any,
    ) -> int | dict[str, Any]:
        """Picks one of several answers.

        Args:
            question: The question.
            possible_answers: The answers.
            context: The text that it is about.
            return_explanation: Whether to explain.
            callback: Told of the pieces of the answer; False stops.
            **options: Options of `generate_text`.

        Returns:
            The answer's index, 0 for the first; with `return_explanation`, `{"index": int, "explanation": str}`.

        Raises:
            ConfigurationError: There are no possible answers.
            BackendProtocolError: The model picked none of them.
            CancelledError: The callback stopped before there was a whole answer.
        """
        from ._tasks.data import given
        from ._tasks.questions import choose

        found = choose(self._asker(options, callback), question, possible_answers, given(context), return_explanation)
        return found if return_explanation else int(found["index"])

    def multichoice_ranking(
        self,
        question: str,
        possible_answers: Sequence[str],
        context: str = "",
        return_explanation: bool = False,
        callback: Callback | None = None,
        **options: Any,
    ) -> list[int] | dict[str, Any]:
        """Orders several answers, the best first: a request for each place but the last.

        Args:
            question: The question.
            possible_answers: The answers.
            context: The text that it is about.
            return_explanation: Whether to explain.
            callback: Told of the pieces of the answer; False stops.
            **options: Options of `generate_text`.

        Returns:
            Every index once, 0 for the first answer; with `return_explanation`, `{"ranking": [int], "explanation": str}`.

        Raises:
            ConfigurationError: There are no possible answers.
            BackendProtocolError: The model's answers were none of them.
            CancelledError: The callback stopped before there was a whole answer.
        """
        from ._tasks.data import given
        from ._tasks.questions import rank

        found = rank(self._asker(options, callback), question, possible_answers, given(context), return_explanation)
        return found if return_explanation else list(found["ranking"])

    # ---- structured answers ---------------------------------------------------------------------------------------------------

    def generate_structured_content(
        self, prompt: str, schema: Mapping[str, Any], callback: Callback | None = None, **options: Any
    ) -> dict[str, Any]:
        """Generates an object with a given structure.

        Args:
            prompt: What is asked for.
            schema: JSON Schema of an object, or the short form: names with a type's word, another mapping, or a list of one of
                these (`{"name": "string", "tags": ["string"], "home": {"city": "string"}}`).
            callback: Told of the pieces of the answer; False stops.
            **options: Options of `generate_text`.

        Returns:
            The object, valid against the schema.

        Raises:
            ConfigurationError: `schema` is neither form.
            BackendProtocolError: The model's answers were not valid.
            CancelledError: The callback stopped before there was a whole answer.
        """
        from ._tasks.structured import structured_content

        return structured_content(self._asker(options, callback), prompt, schema)

    def generate_structured_content_pydantic(
        self,
        prompt: str,
        Model: type[M],  # noqa: N803 - the documented name
        callback: Callback | None = None,
        **options: Any,
    ) -> M:
        """Generates an instance of a pydantic model (version 2).

        Args:
            prompt: What is asked for.
            Model: The model's class.
            callback: Told of the pieces of the answer; False stops.
            **options: Options of `generate_text`.

        Returns:
            The instance, as the class itself validated it.

        Raises:
            ConfigurationError: `Model` is no pydantic model.
            BackendProtocolError: The model's answers were not valid.
            CancelledError: The callback stopped before there was a whole answer.
        """
        from ._tasks.structured import structured_content_pydantic

        return structured_content_pydantic(self._asker(options, callback), prompt, Model)

    # ---- code -----------------------------------------------------------------------------------------------------------------

    def generate_code(
        self,
        prompt: str,
        language: str = "python",
        template: str | None = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> str:
        """Generates code; an answer that was cut off is carried on.

        Args:
            prompt: What the code is to do.
            language: The language.
            template: Code to fill in.
            callback: Told of the pieces of the answer; False stops.
            **options: Options of `generate_text`.

        Returns:
            The code, without fences; what there is of it, where the callback stopped.

        Raises:
            BackendProtocolError: The model wrote no code.
            LimitError: The code was cut off again and again.
            CancelledError: The callback stopped before any code.
        """
        from ._tasks.codegen import code

        return code(self._asker(options, callback), prompt, language, template)

    def generate_codes(
        self,
        prompt: str,
        language: str = "",
        template: str | None = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> list[dict[str, Any]]:
        """Generates several files; an answer that was cut off is carried on.

        Args:
            prompt: What the files are to do.
            language: Their language, "" for whatever fits.
            template: Code to fill in.
            callback: Told of the pieces of the answer; False stops.
            **options: Options of `generate_text`.

        Returns:
            `{"file_name", "content", "language", "is_complete"}` each. Names are relative, without steps upwards; a file that the
            model gave no name is called `file_<number>`. Only the last can be incomplete.

        Raises:
            BackendProtocolError: The model wrote no code.
            CancelledError: The callback stopped before any code.
        """
        from ._tasks.codegen import code_files

        return code_files(self._asker(options, callback), prompt, language, template)

    # ---- texts of models ------------------------------------------------------------------------------------------------------

    def extract_code_blocks(self, text: str, format: str = "markdown") -> list[dict[str, Any]]:  # noqa: A002 - the documented name
        """The code blocks of a text.

        Args:
            text: A model's answer.
            format: "markdown" or "html".

        Returns:
            `{"index", "file_name", "content", "type", "is_complete"}` each; `is_complete` is False for a block that was not
            closed.

        Raises:
            ConfigurationError: Another format.
        """
        from ._text.code_blocks import extract_code_blocks

        return extract_code_blocks(text, format)

    def extract_thinking_blocks(self, text: str) -> list[str]:
        """The thoughts of a text, by the marks that this model uses."""
        from ._text.thinking import extract_thinking_blocks

        return extract_thinking_blocks(text, self.thinking_tags())

    def remove_thinking_blocks(self, text: str) -> str:
        """The text without its thoughts, by the marks that this model uses."""
        from ._text.thinking import remove_thinking_blocks

        return remove_thinking_blocks(text, self.thinking_tags())
