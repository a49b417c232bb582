"""The adversarial candidates of data/cheats.py, each with the gate that is there for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from kernelwright.v1 import worker_pb2
from worker.client import DATA, array, judge_job, source

SMALL = [array("x", "float32", 16, 128)]
STEPS = [array("x", "bfloat16", 64, 8, 128)]
FEW_STEPS = [array("x", "float32", 4, 8, 128)]
SQUARE = [array("x", "float32", 128, 128), array("y", "float32", 128, 128)]


@dataclasses.dataclass(frozen=True)
class Trick:
    """A candidate, what it claims to be equal to, and who must object."""

    name: str
    gate: str
    reference: str = "add_one_reference"
    inputs: tuple[worker_pb2.InputSpec, ...] = tuple(SMALL)

    def job(self, only: Sequence[str] = ()) -> worker_pb2.Job:
        """The judgement of this candidate."""
        kernels = DATA / "kernels.py"
        candidate = source(DATA / "cheats.py", self.name, kernels)
        return judge_job(candidate, source(kernels, self.reference), self.inputs, only=only)


TRICKS = [
    Trick("constant", "G43"),
    Trick("echo", "G43"),
    Trick("says_passed", "G43"),
    Trick("raises", "G43"),
    Trick("no_kernel", "G20"),
    Trick("interpret_left_on", "G20"),
    Trick("host_callback", "G20"),
    Trick("captured_constant", "G20"),
    Trick("decoration", "G21"),
    Trick("out_of_bounds", "G31"),
    Trick("uninitialised", "G31", "sum_steps_reference", tuple(FEW_STEPS)),
    Trick("race", "G31", "sum_steps_reference", tuple(FEW_STEPS)),
    Trick("special_case", "G40"),
    Trick("eats_input", "G42"),
    Trick("writes_input", "G42"),
    Trick("wrong_type", "G45"),
    Trick("wrong_tree", "G45"),
    Trick("narrow_accumulator", "G46", "sum_steps_reference", tuple(STEPS)),
    Trick("low_precision", "G46", "matmul_reference", tuple(SQUARE)),
    Trick("rounded_and_widened", "G46", "matmul_reference", tuple(SQUARE)),
    Trick("leaves_thread", "G52"),
    Trick("leaves_process", "G52"),
]
