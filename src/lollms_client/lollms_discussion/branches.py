"""Branches: every message has a parent, so a branch is a message without children and all above it. Source: CONTRACT G."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .._store import messages as store
from .._store.ids import new_id
from .._store.messages import LollmsMessage
from ..errors import ConfigurationError, UnknownNameError
from .thread import Thread

__all__ = ["Branches", "Skeleton"]

_DIRECTIONS = {-1: -1, 1: 1, "previous": -1, "next": 1}
_PREVIEW_CHARS = 80


class Skeleton:
    """How messages hang together, without what they say.

    Args:
        pairs: Id and parent of each, parents before their children, otherwise in the order in which they were written.

    Attributes:
        parents: Message -> its parent.
        children: Message (None for the beginning) -> those that follow it.
    """

    def __init__(self, pairs: Iterable[tuple[str, str | None]]) -> None:
        self.parents: dict[str, str | None] = dict(pairs)
        self.children: dict[str | None, list[str]] = {}
        for one, parent in self.parents.items():
            self.children.setdefault(parent, []).append(one)

    def below(self, top: str) -> list[str]:
        """A message and all that follows it, in the order in which they were written."""
        inside = {top}
        for one, parent in self.parents.items():
            if parent in inside:
                inside.add(one)
        return [one for one in self.parents if one in inside]

    def newest_leaf(self, top: str | None) -> str | None:
        """Of the branches through a message (None for all), the end of the one that was written to last; None for none."""
        if top is not None:
            return self.below(top)[-1]  # what was written last has nothing below it
        return next(reversed(self.parents), None)

    def upwards(self, leaf: str | None) -> list[str]:
        """A message and all above it, the message first."""
        found: list[str] = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.parents[leaf]
        return found

    def leaves(self) -> list[str]:
        """The messages that nothing follows."""
        return [one for one in self.parents if one not in self.children]

    def depths(self) -> dict[str | None, int]:
        """How many messages each branch has down to a message."""
        depths: dict[str | None, int] = {None: 0}
        for one, parent in self.parents.items():
            depths[one] = depths[parent] + 1
        return depths


class Branches(Thread):
    """What can be done with the branches of a discussion. Messages never change: an edit is a sibling, a merge adds copies."""

    def _bones(self) -> Skeleton:
        return Skeleton(self._skeleton())

    def _known(self, bones: Skeleton, message_id: str) -> str:
        if message_id not in bones.parents:
            raise self._unknown(message_id)
        return message_id

    # ---- looking --------------------------------------------------------------------------------------------------------------

    def get_children(self, message_id: str | None = None) -> list[LollmsMessage]:
        """The messages that follow one, in the order in which they were written; the first ones of the discussion for None.

        Raises:
            UnknownNameError: There is no such message.
        """
        with self._lock:
            if message_id is not None:
                self._demand(message_id)
            found: list[LollmsMessage] = self._read(lambda tx: store.children(tx, self.id, message_id), [])
            return [*found, *(m for m in self._held.values() if m.parent_id == message_id)]

    def get_siblings(self, message_id: str) -> list[LollmsMessage]:
        """The messages that follow the same one, this one among them, in the order in which they were written.

        Raises:
            UnknownNameError: There is no such message.
        """
        return self.get_children(self.get_message(message_id).parent_id)

    def list_branches(self) -> list[dict[str, Any]]:
        """The branches, in the order in which their last messages were written.

        Returns:
            `{"leaf_id", "label", "length", "active", "created_at", "preview"}` each: `length` in messages, `active` for the
            branch that is open, `preview` the beginning of its last message.
        """
        with self._lock:
            labels, bones = self._labels(), self._bones()
            active = bones.newest_leaf(self.active_branch_id) if self.active_branch_id is not None else None
            depths = bones.depths()
            return [
                {
                    "leaf_id": leaf.id,
                    "label": labels.get(leaf.id),
                    "length": depths[leaf.id],
                    "active": leaf.id == active,
                    "created_at": leaf.created_at,
                    "preview": " ".join(leaf.content[: 4 * _PREVIEW_CHARS].split())[:_PREVIEW_CHARS],
                }
                for leaf in map(self.get_message, bones.leaves())
            ]

    def get_tree(self) -> list[dict[str, Any]]:
        """The whole discussion as nested values: `{"message", "label", "active", "children"}`, one for each first message.

        It is as deep as the discussion is long: go through it with a loop.
        """
        with self._lock:
            labels, everything, bones = self._labels(), self.get_messages(), self._bones()
            on_branch = set(bones.upwards(self.active_branch_id))
        nodes: dict[str, dict[str, Any]] = {
            m.id: {"message": m, "label": labels.get(m.id), "active": m.id in on_branch, "children": []} for m in everything
        }
        roots: list[dict[str, Any]] = []
        for message in everything:
            above = roots if message.parent_id is None else nodes[message.parent_id]["children"]
            above.append(nodes[message.id])
        return roots

    def _labels(self) -> dict[str, str]:
        return self._read(lambda tx: store.labels(tx, self.id), {})

    def branch_diff(self, a: str, b: str) -> dict[str, Any]:
        """How two branches differ.

        Args:
            a: The last message of one.
            b: The last message of the other.

        Returns:
            `{"common_ancestor_id", "only_in_a", "only_in_b", "shared"}`: the id of the last message of both (None where there is
            none), and lists of messages, the first one first.

        Raises:
            UnknownNameError: There is no such message.
        """
        one, other = self._branch(a), self._branch(b)
        pairs = enumerate(zip(one, other, strict=False))
        count = next((i for i, (mine, its) in pairs if mine.id != its.id), min(len(one), len(other)))
        return {
            "common_ancestor_id": one[count - 1].id if count else None,
            "only_in_a": one[count:],
            "only_in_b": other[count:],
            "shared": one[:count],
        }

    # ---- going about ----------------------------------------------------------------------------------------------------------

    def switch_branch(self, leaf_id: str) -> str:
        """Goes over to the branch of a message; of one with messages below it, to the branch that was written to last.

        Returns:
            The id of the branch's last message.

        Raises:
            UnknownNameError: There is no such message.
        """
        with self._lock:
            bones = self._bones()
            leaf = bones.newest_leaf(self._known(bones, leaf_id))
            assert leaf is not None
            self._set(active_leaf=leaf)
            return leaf

    def switch_to_sibling(self, direction: int | str = 1, message_id: str | None = None) -> str:
        """Goes over to the branch beside this one, round and round.

        Args:
            direction: 1 or "next", -1 or "previous", in the order in which the siblings were written.
            message_id: The message whose siblings are meant; None for the last one of the branch that has any.

        Returns:
            The id of the new branch's last message.

        Raises:
            UnknownNameError: No such direction or message, or the branch has no siblings.
        """
        if direction not in _DIRECTIONS:
            raise UnknownNameError("direction", direction, map(str, _DIRECTIONS))
        with self._lock:
            bones = self._bones()
            above = [self._known(bones, message_id)] if message_id is not None else bones.upwards(self.active_branch_id)
            here = next((one for one in above if len(bones.children[bones.parents[one]]) > 1), message_id)
            if here is None:
                raise UnknownNameError("sibling", direction, [], "This discussion has one branch.")
            row = bones.children[bones.parents[here]]
            return self.switch_branch(row[(row.index(here) + _DIRECTIONS[direction]) % len(row)])

    def fork_from(
        self, message_id: str | None, content: str | None = None, sender: str = "user", **fields: Any
    ) -> LollmsMessage | None:
        """Goes on from a message: what is added next begins a new branch there.

        Args:
            message_id: The message; None for the beginning of the discussion.
            content: A message that is added at once, None for none.
            sender: Who that is from.
            **fields: Its other fields, as in `add_message`.

        Returns:
            The message that was added, None where none was.

        Raises:
            UnknownNameError: There is no such message.
        """
        with self._lock:
            if message_id is not None:
                self._demand(message_id)
            if content is None:
                self._set(active_leaf=message_id)
                return None
            kind = fields.pop("sender_type", None)
            return self._append(self._made(sender, kind, content, fields), message_id)

    # ---- changing -------------------------------------------------------------------------------------------------------------

    def set_branch_label(self, leaf_id: str, label: str | None) -> None:
        """Names a branch, None for no name; what is held is written with it.

        Raises:
            UnknownNameError: There is no such message.
        """
        with self._lock:
            self._demand(leaf_id)
            self.commit()
            with self._db.write() as tx:
                store.set_label(tx, leaf_id, label)

    def prune_branch(self, message_id: str) -> int:
        """Deletes a message and everything below it; what is held is written first.

        Returns:
            How many messages were deleted.

        Raises:
            UnknownNameError: There is no such message.
        """
        with self._lock:
            bones = self._bones()
            return self._delete(bones, bones.below(self._known(bones, message_id)))

    def delete_branch(self, leaf_id: str) -> int:
        """Deletes what only this branch holds; what is held is written first.

        Args:
            leaf_id: Its last message.

        Returns:
            How many messages were deleted.

        Raises:
            UnknownNameError: There is no such message.
            ConfigurationError: The message is no branch's last one.
        """
        with self._lock:
            bones = self._bones()
            if self._known(bones, leaf_id) in bones.children:
                raise ConfigurationError(
                    f"{leaf_id} is not the end of a branch: messages follow it. prune_branch() deletes it with them."
                )
            gone = [leaf_id]
            for above in bones.upwards(leaf_id)[1:]:
                if len(bones.children[above]) > 1:
                    break
                gone.append(above)
            return self._delete(bones, gone)

    def _delete(self, bones: Skeleton, ids: list[str]) -> int:
        """Deletes messages; where the branch that is open was among them, the newest one beside it is open afterwards."""
        gone, active = set(ids), self.active_branch_id
        if active in gone:
            left = Skeleton((one, parent) for one, parent in bones.parents.items() if one not in gone)
            active = left.newest_leaf(next((one for one in bones.upwards(active) if one not in gone), None))
        self.commit()
        with self._db.write() as tx:
            self._write_row(tx, active)
            count = store.delete_messages(tx, ids)
        self._row_is_written()
        self._row.active_leaf = active
        return count

    def merge_branches(self, source: str, target: str | None = None) -> list[LollmsMessage]:
        """Adds copies of what only one branch holds behind another one, which is open then; both stay as they are above.

        Args:
            source: The last message of the branch that is copied from.
            target: The last message of the branch that is added to, None for the one that is open.

        Returns:
            The new messages; `metadata["merged_from"]` of each is the id of its original.

        Raises:
            UnknownNameError: There is no such message.
        """
        with self._lock:
            behind = target if target is not None else self.active_branch_id
            if behind is None:
                raise self._unknown(behind)
            copies: list[LollmsMessage] = []
            for original in self.branch_diff(source, behind)["only_in_a"]:
                copies.append(_copy(original, copies[-1].id if copies else behind))
            if self.autosave and copies:
                self._write(copies)
            else:
                self._held.update({copy.id: copy for copy in copies})
            self._set(active_leaf=copies[-1].id if copies else behind)
            return copies


def _copy(original: LollmsMessage, parent_id: str) -> LollmsMessage:
    """A copy, which no turn stands behind: that is the original's."""
    about = {name: value for name, value in original.metadata.items() if name not in ("turn_id", "turn_status", "dialect")}
    return replace(
        original,
        id=new_id(),
        parent_id=parent_id,
        images=list(original.images),
        active_images=list(original.active_images),
        metadata={**about, "merged_from": original.id},
        created_at=time.time(),
    )
