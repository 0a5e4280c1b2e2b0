"""Branches: every message has a parent, so a branch is a message without children and all above it. Source: CONTRACT G."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._store import messages as store
from .._store.messages import LollmsMessage
from ..errors import ConfigurationError, UnknownNameError
from .thread import Thread

__all__ = ["Branches"]

_DIRECTIONS = {-1: -1, 1: 1, "previous": -1, "next": 1}


class Branches(Thread):
    """What can be done with the branches of a discussion. Messages never change: an edit is a sibling, a merge adds copies."""

    # ---- looking --------------------------------------------------------------------------------------------------------------

    def get_children(self, message_id: str | None = None) -> list[LollmsMessage]:
        """The messages that follow one; the first ones of the discussion for None."""
        if message_id is not None:
            self._demand(message_id)
        return self._children(message_id)

    def _children(self, message_id: str | None) -> list[LollmsMessage]:
        with self._lock:
            with self._db.read() as tx:
                found = store.children(tx, self.id, message_id) if self._stored else []
            return [*found, *(m for m in self._held.values() if m.parent_id == message_id)]

    def get_siblings(self, message_id: str) -> list[LollmsMessage]:
        """The messages that follow the same one, this one among them, in the order in which they were written."""
        return self._children(self.get_message(message_id).parent_id)

    def list_branches(self) -> list[dict[str, Any]]:
        """The branches: `{"leaf_id", "label", "length", "active", "created_at", "preview"}` each, in order of their beginning."""
        labels, active, out = self._labels(), self._leaf_of(self.active_branch_id), []
        parents = dict(self._skeleton())
        for leaf in self._leaves(parents.items()):
            message, length = self.get_message(leaf), 0
            here: str | None = leaf
            while here is not None:
                length, here = length + 1, parents[here]
            out.append(
                {
                    "leaf_id": leaf,
                    "label": labels.get(leaf),
                    "length": length,
                    "active": leaf == active,
                    "created_at": message.created_at,
                    "preview": " ".join(message.content.split())[:80],
                }
            )
        return out

    def get_tree(self) -> list[dict[str, Any]]:
        """The whole discussion as nested values: `{"message", "label", "active", "children"}`, one for each first message."""
        labels, everything = self._labels(), self.get_messages()
        on_branch = {m.id for m in self.get_branch()}
        nodes: dict[str, dict[str, Any]] = {
            m.id: {"message": m, "label": labels.get(m.id), "active": m.id in on_branch, "children": []} for m in everything
        }
        roots: list[dict[str, Any]] = []
        for message in everything:
            above = roots if message.parent_id is None else nodes[message.parent_id]["children"]
            above.append(nodes[message.id])
        return roots

    def _labels(self) -> dict[str, str]:
        with self._db.read() as tx:
            return store.labels(tx, self.id) if self._stored else {}

    @staticmethod
    def _leaves(skeleton: Iterable[tuple[str, str | None]]) -> list[str]:
        pairs = list(skeleton)
        parents = {parent for _, parent in pairs}
        return [one for one, _ in pairs if one not in parents]

    def _leaf_of(self, message_id: str | None) -> str | None:
        """The newest leaf below a message: the branch that it is shown on."""
        if message_id is None:
            return None
        below = {parent: one for one, parent in self._skeleton()}  # the newest child wins
        here = message_id
        while here in below:
            here = below[here]
        return here

    # ---- going about ----------------------------------------------------------------------------------------------------------

    def switch_branch(self, leaf_id: str) -> str:
        """Goes over to the branch of a message; of one with messages below it, to its newest branch.

        Returns:
            The id of the branch's last message.
        """
        self._demand(leaf_id)
        leaf = self._leaf_of(leaf_id)
        self.active_branch_id = leaf
        assert leaf is not None
        return leaf

    def switch_to_sibling(self, direction: int | str = 1, message_id: str | None = None) -> str:
        """Goes over to the branch beside this one, round and round.

        Args:
            direction: 1 or "next", -1 or "previous".
            message_id: The message whose siblings are meant; None for the last one of the branch that has any.

        Returns:
            The id of the new branch's last message.

        Raises:
            UnknownNameError: No such direction, or the branch has no siblings.
        """
        if direction not in _DIRECTIONS:
            raise UnknownNameError("direction", direction, map(str, _DIRECTIONS))
        if message_id is None:
            message_id = next((m.id for m in reversed(self.get_branch()) if len(self.get_siblings(m.id)) > 1), None)
        if message_id is None:
            raise UnknownNameError("sibling", "next", [], "This discussion has one branch.")
        siblings = [m.id for m in self.get_siblings(message_id)]
        return self.switch_branch(siblings[(siblings.index(message_id) + _DIRECTIONS[direction]) % len(siblings)])

    def fork_from(
        self, message_id: str | None, content: str | None = None, sender: str = "user", **fields: Any
    ) -> LollmsMessage | None:
        """Goes on from a message: what is added next begins a new branch there.

        Args:
            message_id: The message; None for the beginning of the discussion.
            content: A message that is added at once, None for none.
            sender: Who that is from.
            **fields: Its other fields.

        Returns:
            The message that was added, None where none was.
        """
        self.active_branch_id = message_id
        return self.add_message(sender, content=content, **fields) if content is not None else None

    # ---- changing -------------------------------------------------------------------------------------------------------------

    def set_branch_label(self, leaf_id: str, label: str | None) -> None:
        """Names a branch, None for no name."""
        self._demand(leaf_id)
        self._settle()
        with self._db.write() as tx:
            store.set_label(tx, leaf_id, label)

    def _settle(self) -> None:
        """Writes what is held: what follows is about what is stored."""
        if self._held or not self._stored:
            self.commit()

    def prune_branch(self, message_id: str) -> int:
        """Deletes a message and everything below it.

        Returns:
            How many messages were deleted.
        """
        message = self.get_message(message_id)
        self._settle()
        below: dict[str | None, list[str]] = {}
        for one, parent in self._skeleton():
            below.setdefault(parent, []).append(one)
        gone, pending = [], [message_id]
        while pending:
            here = pending.pop()
            gone.append(here)
            pending.extend(below.get(here, ()))
        return self._delete(gone, message.parent_id)

    def delete_branch(self, leaf_id: str) -> int:
        """Deletes what only this branch holds.

        Args:
            leaf_id: Its last message.

        Returns:
            How many messages were deleted.

        Raises:
            ConfigurationError: The message is no branch's last one.
        """
        chain = [m.id for m in self.get_branch(leaf_id)]
        self._settle()
        below: dict[str | None, int] = {}
        for _, parent in self._skeleton():
            below[parent] = below.get(parent, 0) + 1
        if leaf_id in below:
            raise ConfigurationError(
                f"{leaf_id} is not the end of a branch: messages follow it. prune_branch() deletes it with them."
            )
        gone = [chain.pop()]
        while chain and below[chain[-1]] == 1:
            gone.append(chain.pop())
        return self._delete(gone, chain[-1] if chain else None)

    def _delete(self, ids: list[str], above: str | None) -> int:
        lost = set(ids)
        with self._lock:
            if self.active_branch_id in lost:
                self._row.active_leaf = above
            with self._db.write() as tx:
                count = store.delete_messages(tx, ids)
                self._write_row(tx, self.active_branch_id)
            self._is_written()
        if self.active_branch_id is not None:
            self._row.active_leaf = self._leaf_of(self.active_branch_id)
        return count

    def merge_branches(self, source: str, target: str | None = None) -> list[LollmsMessage]:
        """Adds copies of what only one branch holds behind another one; both stay as they are above.

        Args:
            source: The last message of the branch that is copied from.
            target: The last message of the branch that is added to, None for the one that is open.

        Returns:
            The new messages; `metadata["merged_from"]` of each is the id of its original.
        """
        target = target if target is not None else self.active_branch_id
        there = {m.id for m in self.get_branch(target)}
        added, parent = [], target
        for original in self.get_branch(source):
            if original.id in there:
                continue
            copy = self._made(
                original.sender,
                original.sender_type,
                original.content,
                {
                    "thoughts": original.thoughts,
                    "tokens": original.tokens,
                    "binding_name": original.binding_name,
                    "model_name": original.model_name,
                    "generation_speed": original.generation_speed,
                    "images": list(original.images),
                    "active_images": list(original.active_images),
                    "metadata": {**original.metadata, "merged_from": original.id},
                },
            )
            added.append(self._append(copy, parent))
            parent = copy.id
        return added

    def branch_diff(self, a: str, b: str) -> dict[str, Any]:
        """How two branches differ.

        Returns:
            `{"common_ancestor_id", "only_in_a", "only_in_b", "shared"}`: the id of the last message of both (None where there is
            none), and lists of messages.
        """
        one, other = self.get_branch(a), self.get_branch(b)
        count = 0
        while count < min(len(one), len(other)) and one[count].id == other[count].id:
            count += 1
        return {
            "common_ancestor_id": one[count - 1].id if count else None,
            "only_in_a": one[count:],
            "only_in_b": other[count:],
            "shared": one[:count],
        }
