"""Gates: right kernels pass all, each trick is rejected by the gate that is there for it."""

from __future__ import annotations

import pytest
from worker.client import DATA, Gate, Outcome, Worker, array, gates, judge_job, key, source
from worker.conftest import Write
from worker.tricks import FEW_STEPS, SMALL, STEPS, TRICKS, Trick

KERNELS = DATA / "kernels.py"
CHEATS = DATA / "cheats.py"


@pytest.mark.parametrize(
    ("name", "reference", "shapes"),
    [
        ("add_one", "add_one_reference", [SMALL, [array("x", "float32", 40, 128)]]),
        (
            "matmul",
            "matmul_reference",
            [[array("x", "bfloat16", 256, 256), array("y", "bfloat16", 256, 256)]],
        ),
        # The reference widens what has 16 bits; the unit multiplies those exactly.
        (
            "matmul",
            "matmul_widened_reference",
            [[array("x", "bfloat16", 256, 256), array("y", "bfloat16", 256, 256)]],
        ),
        ("matmul", "matmul", [[array("x", "bfloat16", 256, 256), array("y", "bfloat16", 256, 256)]]),
        ("softmax", "softmax_reference", [SMALL]),
        ("reverse_blocks", "reverse_blocks_reference", [SMALL]),
        ("reverse_blocks", "reverse_blocks", [SMALL]),
        ("numbered_blocks", "numbered_blocks_reference", [SMALL]),
        ("normalize", "normalize_reference", [SMALL]),
        ("sum_steps", "sum_steps_reference", [STEPS]),
    ],
)
def test_right_kernels_pass_every_gate(
    worker: Worker, name: str, reference: str, shapes: list[list[object]]
) -> None:
    found = worker.run(judge_job(source(KERNELS, name), source(KERNELS, reference), *shapes))  # type: ignore[arg-type]
    assert found.outcome == Outcome.DONE, found.detail
    assert not gates(found, Gate.FAIL)
    assert not gates(found, Gate.NOT_RUN)
    assert set(gates(found, Gate.PASS)) == set("G20 G21 G30 G31 G40 G42 G43 G45 G46 G50 G52".split())
    assert len({c.distribution for c in found.judge.comparisons}) >= 3
    assert len(found.judge.inputs_sha256) == 64


@pytest.mark.parametrize("trick", TRICKS, ids=lambda t: t.name)
def test_each_trick_is_rejected_by_its_gate(worker: Worker, trick: Trick) -> None:
    found = worker.run(trick.job())
    assert found.outcome == Outcome.DONE, found.detail
    assert trick.gate in gates(found, Gate.FAIL), found.judge
    assert all(g.reason for g in found.judge.gates if g.status != Gate.PASS)


@pytest.mark.parametrize("trick", TRICKS, ids=lambda t: t.name)
def test_its_gate_alone_rejects_each_trick(worker: Worker, trick: Trick) -> None:
    found = worker.run(trick.job(only=[trick.gate]))
    assert [g.gate for g in found.judge.gates] == [trick.gate]
    assert trick.gate in gates(found, Gate.FAIL), found.judge


def test_right_for_one_shape_only(worker: Worker) -> None:
    shapes = SMALL, [array("x", "float32", 24, 128)]
    what = source(CHEATS, "first_shape_only", KERNELS)
    found = worker.run(judge_job(what, source(KERNELS, "add_one_reference"), *shapes))
    assert {"G40", "G43"} <= set(gates(found, Gate.FAIL))
    assert "shape-1" in gates(found, Gate.FAIL)["G40"]


def test_a_candidate_that_exits_is_a_crash_with_its_role(worker: Worker) -> None:
    found = worker.run(
        judge_job(source(CHEATS, "exits", KERNELS), source(KERNELS, "add_one_reference"), SMALL)
    )
    assert (found.outcome, found.role) == (Outcome.CRASHED, "candidate")


def test_a_reference_that_fails_is_not_the_candidates_fault(worker: Worker) -> None:
    found = worker.run(judge_job(source(KERNELS, "add_one"), source(CHEATS, "raises", KERNELS), SMALL))
    assert set(gates(found, Gate.FAIL)) == {"G30"}
    assert found.judge.reference_error.type == "RuntimeError"
    assert not found.judge.HasField("candidate_error")


@pytest.mark.parametrize(("name", "failed"), [("sum_steps", ""), ("race", "G31"), ("uninitialised", "G31")])
def test_is_the_original_sound(worker: Worker, name: str, failed: str) -> None:
    file = KERNELS if name == "sum_steps" else CHEATS
    what = source(file, name, KERNELS)
    found = worker.run(judge_job(what, what, FEW_STEPS, claims_kernel=False, reference_only=True))
    assert found.outcome == Outcome.DONE, found.detail
    assert (failed in gates(found, Gate.FAIL)) if failed else not gates(found, Gate.FAIL)


def test_keys_and_integers_are_drawn(worker: Worker, write: Write) -> None:
    path = write(
        "drawn.py",
        """
        import jax
        import jax.numpy as jnp

        def f(x, ids, flag, key):
            noise = jax.random.normal(key, x.shape, x.dtype)
            return jnp.where(flag[:, None], x[ids] + noise, 0), jnp.argmax(x, -1)
        """,
    )
    ids = array("ids", "int32", 16)
    ids.tensor.has_range, ids.tensor.low, ids.tensor.high = True, 0, 15
    inputs = [array("x", "float32", 16, 32), ids, array("flag", "bool", 16), key("key")]
    found = worker.run(judge_job(source(path, "f"), source(path, "f"), inputs, claims_kernel=False))
    assert not gates(found, Gate.FAIL), found.judge
    assert {c.output for c in found.judge.comparisons} == {0, 1}


def test_no_shape_is_never_a_pass(worker: Worker) -> None:
    found = worker.run(judge_job(source(KERNELS, "add_one"), source(KERNELS, "add_one_reference")))
    assert not set(gates(found, Gate.PASS)) - {"G50"}
    assert gates(found, Gate.NOT_RUN)["G43"] == "no shape was given to check at"


def test_seeds_make_runs_repeatable(worker: Worker) -> None:
    job = judge_job(source(KERNELS, "add_one"), source(KERNELS, "add_one_reference"), SMALL)
    first, second = worker.run(job), worker.run(job)
    assert first.judge == second.judge
