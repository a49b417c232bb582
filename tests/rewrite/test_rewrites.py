"""Every rule applied for real: it traces, compiles, passes the gates against the original, and pays."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from harness import Kernelwright
from rewrite.apply import KERNELS, TOOL
from rewrite.cases import GAINS, PAIRS, REFUSALS, Gain, Pair, Refusal
from rewrite.measure import Bench
from worker.client import Worker


@pytest.fixture(scope="module")
def bench(shared: Kernelwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    assert TOOL.is_file(), f"{TOOL} is missing: run scripts/build"
    folder: pathlib.Path = tmp_path_factory.mktemp("rewritten")
    with Worker(KERNELS, folder) as worker:
        worker.hello(parallel_jobs=2)
        yield Bench(worker, shared, folder)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case.rule}-{case.function}", marks=[] if case.quick else [pytest.mark.full])
        for case in GAINS
    ],
)
def test_a_rule_alone_pays_and_keeps_the_values(bench: Bench, case: Gain) -> None:
    ratio, failed, proposal = bench.gain(case)
    if case.allowed == "lower-precision":
        assert "G43" in failed  # the values differ by more than a float32 reference allows, and are found to
    else:
        assert not failed
    assert ratio >= case.ratio
    assert proposal["reason"] and proposal["evidence"]


@pytest.mark.full
@pytest.mark.parametrize("case", PAIRS, ids=lambda c: c.function)
def test_two_rules_reach_what_neither_reaches_alone(bench: Bench, case: Pair) -> None:
    (first, second, both), failed = bench.pair(case)
    assert not failed
    assert both > 1.03 * max(first, second)


@pytest.mark.full
@pytest.mark.parametrize("case", REFUSALS, ids=lambda c: c.rule)
def test_a_rule_refuses_where_it_must(bench: Bench, case: Refusal) -> None:
    assert case.word in bench.refusal(case)
