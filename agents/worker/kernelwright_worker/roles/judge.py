"""Role judge: draws inputs, has reference and candidate run them, compares, and gives a verdict per gate.

The process imports no user code. Cheap checks come first: programs, then the smallest shape, then the other
shapes; the first failure of a gate ends the job, since a candidate needs all of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import socket
from collections.abc import Iterator

from kernelwright.v1 import worker_pb2

from kernelwright_worker.judging import distributions, tensors, verdict
from kernelwright_worker.judging.gates import CANDIDATE_GATES, KERNEL_GATES, ORIGINAL_GATES, Gates
from kernelwright_worker.judging.peer import Peer, WrongNonce, request
from kernelwright_worker.judging.programs import Summary, summarize

_MAX_SEED = 2**31 - 1
_MIN_DISTRIBUTIONS = 3
# Plain evaluation copies an operand that the kernel fetches from by itself with every fetch: above this many
# elements the interpreter is the faster one.
_LARGEST_UNCUT = 1 << 20


class _Stop(Exception):
    """There is nothing more to find out; the text is the reason of gates that were not run."""


@dataclasses.dataclass(frozen=True)
class _Check:
    """One run of the candidate."""

    shape: worker_pb2.CheckShape
    place: int
    distribution: str
    seed: int
    interpreter_seed: int

    @property
    def label(self) -> str:
        return f"shape {self.shape.name!r}, {self.distribution}, seed {self.seed}"


@dataclasses.dataclass(frozen=True)
class _Truth:
    """What the reference answers: in its own types, in wider ones, and for inputs moved by a unit in the last
    place.
    """

    native: worker_pb2.RoleReply
    wide: worker_pb2.RoleReply
    moved: worker_pb2.RoleReply


def run(job: worker_pb2.JudgeJob, oracle: socket.socket, candidate: socket.socket) -> worker_pb2.JudgeResult:
    """Carries out the job. Raises PeerGone when another process of the job has ended."""
    return _Judge(job, Peer(oracle, "oracle"), Peer(candidate, "candidate")).run()


class _Judge:
    def __init__(self, job: worker_pb2.JudgeJob, oracle: Peer, candidate: Peer) -> None:
        self._job = job
        self._oracle = oracle
        self._candidate = candidate
        names = list(ORIGINAL_GATES if job.reference_only else CANDIDATE_GATES)
        if job.claims_kernel and not job.reference_only:
            names = [*KERNEL_GATES, *names]
        if job.only_gates:
            names = [n for n in names if n in job.only_gates]
        self._gates = Gates(names)
        self._result = worker_pb2.JudgeResult()
        self._hash = hashlib.sha256()
        self._seeds = [s % _MAX_SEED for s in job.seeds] or [int.from_bytes(os.urandom(3), "little")]
        self._shapes = sorted(job.shapes, key=_elements)
        self._truths: dict[tuple[int, str, int], _Truth] = {}
        self._values: dict[tuple[int, str, int], list[worker_pb2.Tensor]] = {}
        self._summary: Summary | None = None
        self._done: list[_Check] = []
        self._plain_is_slow = False

    def run(self) -> worker_pb2.JudgeResult:
        stopped = ""
        try:
            self._judge()
        except _Stop as stop:
            stopped = str(stop)
        except WrongNonce as error:
            self._gates.fail("G50", str(error))
            stopped = "stopped after G50 failed"
        self._gates.passed("G50", "results came as arrays over a private pipe")
        self._result.gates.extend(self._gates.results(stopped or "nothing was run"))
        self._result.inputs_sha256 = self._hash.hexdigest()
        self._oracle.close()
        self._candidate.close()
        return self._result

    def _judge(self) -> None:
        if not self._shapes:
            raise _Stop("no shape was given to check at")
        self._programs()
        for position, check in enumerate(self._checks()):
            self._check(check)
            self._stop_at_failure()
            if position == 0:
                self._ghosts(check)
        self._conclude()

    def _checks(self) -> Iterator[_Check]:
        """Smallest shape: every distribution, and a second schedule of the interpreter. Others: two
        schedules.
        """
        specs = self._shapes[0].inputs
        names = list(distributions.DISTRIBUTIONS) if distributions.has_floats(specs) else ["normal"]
        second = self._seeds[1] if len(self._seeds) > 1 else (self._seeds[0] + 1) % _MAX_SEED
        yield self._make(0, "normal", self._seeds[0], self._seeds[0])
        yield self._make(0, "normal", second, second)
        for name in names[1:]:
            yield self._make(0, name, self._seeds[0], self._seeds[0])
        for place in range(1, len(self._shapes)):
            yield self._make(place, "normal", self._seeds[0], self._seeds[0])
            yield self._make(place, "normal", second, second)
        for seed in self._seeds[2:]:
            yield self._make(0, "normal", seed, seed)

    def _make(self, place: int, distribution: str, seed: int, interpreter_seed: int) -> _Check:
        return _Check(self._shapes[place], place, distribution, seed, interpreter_seed)

    # ---- programs

    def _programs(self) -> None:
        specs = self._shapes[0].inputs
        self._oracle.send(request(specs, want_program=True))
        self._candidate.send(request(specs, want_program=True))
        reference, candidate = self._oracle.wait(), self._candidate.wait()
        if reference.HasField("error"):
            self._reference_failed(reference.error)
        if candidate.HasField("error"):
            self._result.candidate_error.CopyFrom(candidate.error)
            self._gates.fail(
                "G43", f"raises {candidate.error.type} when it is traced: {candidate.error.message}"[:2000]
            )
            raise _Stop("the candidate cannot be traced")
        if candidate.leftovers:
            self._gates.fail("G52", f"left alive after it was traced: {candidate.leftovers}")
        self._summary = summarize(candidate.program)
        verdict.weak_type_gate(self._gates, candidate, reference)
        of_reference = summarize(reference.program)
        self._plain_is_slow = of_reference.largest_uncut > _LARGEST_UNCUT
        verdict.program_gates(self._gates, self._summary, of_reference)
        self._stop_at_failure()

    def _reference_failed(self, error: worker_pb2.CodeError) -> None:
        self._result.reference_error.CopyFrom(error)
        self._gates.fail("G30", f"the reference raises {error.type}: {error.message}"[:2000])
        raise _Stop("the reference gives no result to compare with")

    # ---- runs

    def _check(self, check: _Check) -> None:
        values = self._draw(check)
        self._candidate.send(request(check.shape.inputs, values, interpret=True, seed=check.interpreter_seed))
        # Side by side, unless the oracle takes long: a candidate that fails needs no truth.
        early = self._candidate.wait() if self._plain_is_slow else None
        truth = None if early is not None and early.HasField("error") else self._truth(check, values)
        reply = early or self._candidate.wait()
        verdict.run_gates(self._gates, reply, check.label)
        if truth is None or reply.HasField("error"):
            if not self._result.HasField("candidate_error"):
                self._result.candidate_error.CopyFrom(reply.error)
            self._note_special_case(check)
            return
        self._done.append(check)
        verdict.structure_gate(self._gates, reply, truth.native)
        if self._gates.failures:
            return
        compared, uninitialised = self._compare(reply, truth, check)
        self._result.comparisons.extend(compared)
        failed = [c for c in compared if not verdict.passed(c)]
        if failed:
            self._gates.fail("G43", f"output {failed[0].output}, {check.label}: {failed[0].detail}")
            self._note_special_case(check)
        if uninitialised and check.distribution == "normal":
            self._gates.fail(
                "G31",
                "NaN where the reference has numbers: memory that nothing has written was read "
                f"({check.label})",
            )
        elif check.distribution == "normal":
            self._note_unwritten_memory(check, reply, reply.kernels)

    def _note_unwritten_memory(self, check: _Check, reply: worker_pb2.RoleReply, kernels: int) -> None:
        """NaN may be the right answer: it is not when it goes away with memory that holds zeros."""
        places = verdict.nan_places(reply)
        if not kernels or not any(p.any() for p in places):
            return
        values = self._draw(check)
        seed = check.interpreter_seed
        zeroed = self._candidate.ask(
            request(check.shape.inputs, values, interpret=True, seed=seed, zero_memory=True)
        )
        if any((p & ~q).any() for p, q in zip(places, verdict.nan_places(zeroed), strict=False)):
            self._gates.fail("G31", f"memory that nothing has written was read ({check.label})")

    def _note_special_case(self, check: _Check) -> None:
        """Right for ordinary inputs of one shape and wrong elsewhere is what G40 is for."""
        if check.place > 0 or check.distribution != "normal":
            self._gates.fail(
                "G40", f"holds for the smallest shape with normal inputs, and fails at {check.label}"
            )

    def _compare(
        self, reply: worker_pb2.RoleReply, truth: _Truth, check: _Check
    ) -> tuple[list[worker_pb2.Comparison], bool]:
        labels = worker_pb2.Comparison(
            shape=check.shape.name, distribution=check.distribution, seed=check.seed
        )
        return verdict.comparisons(reply, truth.native, truth.wide, truth.moved, self._job.tolerance, labels)

    def _draw(self, check: _Check) -> list[worker_pb2.Tensor]:
        key = (check.place, check.distribution, check.seed)
        if key not in self._values:
            values = distributions.draw(check.shape.inputs, check.distribution, check.seed, check.place)
            for tensor in values:
                self._hash.update(tensor.data)
            self._values = {key: values}  # one at a time: the arrays of a large shape are large
        return self._values[key]

    def _truth(self, check: _Check, values: list[worker_pb2.Tensor]) -> _Truth:
        key = (check.place, check.distribution, check.seed)
        if key in self._truths:
            return self._truths[key]
        specs = check.shape.inputs
        native = self._ask_oracle(specs, values)
        if native.HasField("error"):
            self._reference_failed(native.error)
        wide = moved = native
        if any(_is_narrow(t) for t in values):
            answer = self._ask_oracle(specs, values, widen=True)
            wide = native if answer.HasField("error") else answer  # some references only take their own types
        else:
            answer = self._ask_oracle(specs, distributions.perturb(values, check.seed))
            moved = native if answer.HasField("error") else answer
        truth = _Truth(native, wide, moved)
        self._truths = {key: truth}
        return truth

    def _ask_oracle(
        self, specs: object, values: list[worker_pb2.Tensor], widen: bool = False
    ) -> worker_pb2.RoleReply:
        """Plain evaluation first: it is mostly faster, and what it cannot see is the candidate's matter, not
        the oracle's.
        """
        plain = request(specs, values, widen=widen)  # type: ignore[arg-type]
        full = request(specs, values, widen=widen, interpret=True)  # type: ignore[arg-type]
        first, second = (full, plain) if self._plain_is_slow else (plain, full)
        reply = self._oracle.ask(first)
        if reply.HasField("error"):
            again = self._oracle.ask(second)
            return again if not again.HasField("error") else reply
        return reply

    # ---- ghost replay

    def _ghosts(self, check: _Check) -> None:
        """Each kernel's result is replaced by a marker: the answer must become wrong."""
        if not self._job.claims_kernel or self._job.reference_only or self._summary is None:
            return
        values = self._draw(check)
        truth = self._truth(check, values)
        for number in range(1, self._summary.kernels + 1):
            reply = self._candidate.ask(
                request(check.shape.inputs, values, interpret=True, seed=check.interpreter_seed, ghost=number)
            )
            if reply.HasField("error"):
                continue  # the marker broke what came after it: the result was needed
            compared, _uninitialised = self._compare(reply, truth, check)
            if all(verdict.passed(c) for c in compared):
                self._gates.fail(
                    "G21",
                    f"the answer stays right when the result of kernel {number} is replaced: nobody needs it",
                )
                self._stop_at_failure()
        self._gates.passed("G21")

    # ---- ends

    def _stop_at_failure(self) -> None:
        if self._gates.failures:
            raise _Stop(f"stopped after {' and '.join(self._gates.failures)} failed")

    def _conclude(self) -> None:
        for gate in ("G30", "G31", "G42", "G43", "G45", "G46", "G52"):
            self._gates.passed(gate)
        names = {c.distribution for c in self._done}
        text = f"{len(names)} distribution(s), {len(self._shapes)} shape(s), {len(self._done)} runs"
        if len(names) >= _MIN_DISTRIBUTIONS or not distributions.has_floats(self._shapes[0].inputs):
            self._gates.passed("G40", text)
        else:
            self._gates.not_run("G40", f"only {text}")


def _elements(shape: worker_pb2.CheckShape) -> int:
    return sum(math.prod(s.tensor.type.dims) for s in shape.inputs if s.WhichOneof("kind") == "tensor")


def _is_narrow(tensor: worker_pb2.Tensor) -> bool:
    if tensors.is_key(tensor.type):
        return False
    dtype = tensors.numpy_dtype(tensor.type.dtype)
    return tensors.is_float(dtype) and dtype.itemsize < 4
