"""Fork servers that the router commands: the first one, and a few templates with more packages imported."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import time
from collections.abc import Callable

from kernelwright_worker import messages
from kernelwright_worker.jobs import Part

MAX_TEMPLATES = 4
_IMPORT_SECONDS = 120.0


@dataclasses.dataclass
class Template:
    """A process that children are forked from."""

    key: int
    modules: tuple[str, ...]
    channel: socket.socket
    pid: int = 0
    ready: bool = False
    used: float = 0.0
    created: float = 0.0
    running: int = 0  # children that live: they would die with it
    waiting: list[Part] = dataclasses.field(default_factory=list)


class Templates:
    """Finds or makes the fork server for a set of imports; keeps the most recently used few."""

    def __init__(self, first: socket.socket, released: Callable[[Template], None]) -> None:
        """`released` is called for a template that is no longer used, to close its channel."""
        self._first = first
        self._released = released
        self._keys = 0
        self._by_modules: dict[tuple[str, ...], Template] = {}
        self._unusable: set[tuple[str, ...]] = set()

    def all(self) -> list[Template]:
        """Templates that exist."""
        return list(self._by_modules.values())

    def find(self, modules: tuple[str, ...]) -> tuple[Template | None, bool]:
        """Returns the template for these imports and whether it is new. None: fork from the first server."""
        if not modules or modules in self._unusable:
            return None, False
        known = self._by_modules.get(modules)
        if known is not None:
            known.used = time.monotonic()
            return known, False
        if not self._make_room():
            return None, False
        self._keys += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        now = time.monotonic()
        template = Template(self._keys, modules, ours, used=now, created=now)
        with theirs:
            message = {"op": "template", "key": template.key, "modules": list(modules)}
            messages.send(self._first, message, [theirs.fileno()])
        self._by_modules[modules] = template
        return template, True

    def started(self, key: int, pid: int) -> None:
        """The first server has forked a template."""
        for template in self.all():
            if template.key == key:
                template.pid = pid

    def discard(self, template: Template, *, unusable: bool) -> list[Part]:
        """Ends a template; returns the processes that waited for it."""
        self._by_modules.pop(template.modules, None)
        if unusable:
            self._unusable.add(template.modules)
        if template.pid:
            try:
                os.kill(template.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._released(template)
        waiting, template.waiting = template.waiting, []
        return waiting

    def overdue(self, now: float) -> list[Template]:
        """Templates whose imports take too long."""
        return [t for t in self.all() if not t.ready and now - t.created > _IMPORT_SECONDS]

    def _make_room(self) -> bool:
        if len(self._by_modules) < MAX_TEMPLATES:
            return True
        idle = [t for t in self.all() if t.ready and not t.running and not t.waiting]
        if not idle:
            return False
        oldest = min(idle, key=lambda t: t.used)
        self.discard(oldest, unusable=False)
        return True
