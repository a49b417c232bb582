"""`profile` with the real worker and compiler: where the cycles go, and what is said about it."""

from __future__ import annotations

import html.parser
import json
import pathlib
import re
from typing import Any

import pytest
from harness import EXAMPLES, RESULT, USAGE, USER_CODE, Kernelwright

HEAD = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

"""

CHAIN = (
    HEAD
    + """
def chain_kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x * x + x


# kernelwright: x=bf16[4096,2048]
def chain(x):
    spec = pl.BlockSpec((256, 2048), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(chain_kernel, out_shape=shape, grid=(16,), in_specs=[spec], out_specs=spec)(x)
"""
)

# Whether the second store happens depends on the data, so no time can be given.
WHEN = (
    HEAD
    + """
def when_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

    @pl.when(jnp.max(x_ref[...]) > 0.0)
    def _():
        o_ref[...] = jnp.exp(x_ref[...])


# kernelwright: x=f32[256,128]
def f(x):
    return pl.pallas_call(when_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
)

VOID = {"meta", "link", "br", "img", "input", "hr", "rect", "path", "circle"}


class Balanced(html.parser.HTMLParser):
    """Fails on an end tag that does not fit, and keeps every address that the page names."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if names.get("id"):
            self.ids.add(str(names["id"]))
        if str(names.get("href", "")).startswith("#"):
            self.anchors.add(str(names["href"])[1:])
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in VOID:
            self.open.pop()
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


def line_of(path: pathlib.Path, text: str) -> int:
    """Number of the only line that holds `text`."""
    (number,) = [i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return number


@pytest.fixture(scope="module")
def matmul(shared: Kernelwright, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    page = tmp_path_factory.mktemp("profile") / "page.html"
    target = f"{EXAMPLES / 'matmul_blocks128.py'}::matmul"
    result = shared.run("profile", target, "--chip", "v5e", "--json", "--html", page).expect(RESULT)
    return {**result.json, "page": page.read_text()}


def test_line_totals_equal_the_programs(matmul: dict[str, Any]) -> None:
    assert sum(line["cycles"] for line in matmul["lines"]) == matmul["totals"]["cycles"]
    assert sum(kernel["cycles"] for kernel in matmul["kernels"]) == matmul["totals"]["cycles"]
    assert sum(line["share"] for line in matmul["lines"]) == pytest.approx(1, abs=1e-4)
    clock = matmul["totals"]["cycles"] / matmul["estimate_ms"]
    assert clock == pytest.approx(1.5e6, rel=1e-3)


def test_the_product_is_on_its_line(matmul: dict[str, Any]) -> None:
    line = line_of(EXAMPLES / "matmul_blocks128.py", "jnp.dot(")
    (product,) = [row for row in matmul["lines"] if row["line"] == line]
    assert "jnp.dot" in product["source"]
    # 32768 steps of 128 x 128 x 128: 8 products a step and 8 x 4 pushes of weights, 16 results popped.
    assert product["slots"]["MXU"] >= 32768 * 8
    assert product["live_registers"] <= 64


def test_small_blocks_are_named_as_the_reason(matmul: dict[str, Any]) -> None:
    (kernel,) = [k for k in matmul["kernels"] if k["kind"] == "pallas"]
    assert kernel["grid"] == [32, 32, 32]
    step = kernel["step"]
    assert step["cycles"] == pytest.approx(kernel["cycles"] / kernel["grid_steps"], rel=0.1)
    assert step["wait_cycles"] > step["busy_cycles"]
    advice = {a["id"]: a for a in matmul["advice"]}
    assert {"small_steps", "dma_wait"} <= set(advice)
    assert "Blocks twice as large fit" in advice["dma_wait"]["text"]
    assert advice["dma_wait"]["evidence"]["step_wait_share"] > 0.5
    call = line_of(EXAMPLES / "matmul_blocks128.py", "pl.pallas_call(")
    assert advice["small_steps"]["lines"] == [call]


def test_evidence_class_is_with_the_numbers(matmul: dict[str, Any]) -> None:
    evidence = matmul["evidence"]
    assert evidence["class"] == "estimated"
    assert evidence["chip"] == "v5e"
    assert {"jax", "libtpu", "kernelwright"} <= set(evidence["versions"])
    low, high = matmul["interval"]
    assert low < matmul["estimate_ms"] < high


def test_page_is_whole_and_needs_no_network(matmul: dict[str, Any]) -> None:
    page = matmul["page"]
    parser = Balanced()
    parser.feed(page)
    assert not [tag for tag in parser.open if tag not in VOID]
    assert parser.anchors <= parser.ids
    assert not re.search(r"https?://|src=|@import|url\(", page)
    assert "prefers-color-scheme" in page
    for part in ("roofline of", "timeline of a step", "VMEM by allocation", "jnp.dot("):
        assert part in page


def test_two_versions_are_compared_line_by_line(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    source = (EXAMPLES / "matmul_blocks128.py").read_text()
    tuned = tmp_path / "tuned.py"
    tuned.write_text("# moved down\n" + source.replace("bm=128, bn=128, bk=128", "bm=512, bn=512, bk=1024"))
    target = f"{EXAMPLES / 'matmul_blocks128.py'}::matmul"
    result = (
        shared.run("profile", f"{tuned}::matmul", "--chip", "v5e", "--json", "--against", target)
        .expect(RESULT)
        .json
    )
    against = result["against"]
    assert against["ratio"] == pytest.approx(
        against["against_estimate_ms"] / against["estimate_ms"], rel=1e-4
    )
    assert against["ratio"] > 5
    assert against["verdict"] == "faster"
    (product,) = [row for row in against["lines"] if "jnp.dot" in row["source"]]
    assert product["line"] == product["against_line"] + 1
    shown = shared.run("profile", f"{tuned}::matmul", "--chip", "v5e", "--against", target).expect(RESULT)
    shown.says("against matmul in matmul_blocks128.py on v5e", "values were not compared")


def test_two_chips(shared: Kernelwright) -> None:
    target = f"{EXAMPLES / 'softmax.py'}::softmax"
    result = (
        shared.run("profile", target, "--chip", "v5e,v6e", "--json", "--against", "v5p").expect(RESULT).json
    )
    assert [r["chip"] for r in result["results"]] == ["v5e", "v6e"]
    assert all(r["against"]["chip"] == "v5p" for r in result["results"])
    assert "lines" not in result, "fields of a single chip are not repeated for several"


def test_casts_on_a_chip_whose_vector_unit_has_no_bfloat16(
    shared: Kernelwright, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "chain.py"
    path.write_text(CHAIN)
    line = line_of(path, "o_ref[...] =")
    old = shared.run("profile", f"{path}::chain", "--chip", "v5e", "--json").expect(RESULT).json
    (row,) = [r for r in old["lines"] if r["line"] == line]
    assert row["casts"] > 0
    assert row["casts_inserted"]
    new = shared.run("profile", f"{path}::chain", "--chip", "v6e", "--json").expect(RESULT).json
    assert new["totals"]["casts"] == 0


def test_a_refused_time_still_shows_the_schedule(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "when.py"
    path.write_text(WHEN)
    page = tmp_path / "page.html"
    result = (
        shared.run("profile", f"{path}::f", "--chip", "v5e", "--json", "--html", page).expect(RESULT).json
    )
    assert result["status"] == "refused"
    assert result["estimate_ms"] is None
    assert "depends on data" in result["refusal"]["reason"]
    assert result["counts"] == "static"
    assert any(row["line"] == line_of(path, "jnp.exp") and row["cycles"] > 0 for row in result["lines"])
    assert "No time" in page.read_text()
    shared.run("profile", f"{path}::f", "--chip", "v5e").expect(RESULT).says("no time", "not known")


def test_what_does_not_compile_is_the_users(shared: Kernelwright) -> None:
    result = (
        shared.run("profile", f"{EXAMPLES / 'broken.py'}", "--chip", "v5e", "--json").expect(USER_CODE).json
    )
    text = json.dumps(result)
    assert "broken.py" in text


def test_wrong_usage(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    target = f"{EXAMPLES / 'softmax.py'}::softmax"
    shared.run("profile", f"{EXAMPLES / 'softmax.py'}::absent").expect(USAGE).says("absent")
    shared.run("profile", target, "--chip", "v99").expect(USAGE).says("v99")
    shared.run("profile", target, "--against", "v99").expect(USAGE).says("v99")
    shared.run("profile", target, "--against", tmp_path / "none.py").expect(USAGE).says("no such file")
    help_text = shared.run("profile", "--help").expect(RESULT).out
    assert "kernelwright profile" in help_text


def test_a_second_profile_compiles_nothing(shared: Kernelwright, matmul: dict[str, Any]) -> None:
    target = f"{EXAMPLES / 'matmul_blocks128.py'}::matmul"
    again = shared.run("profile", target, "--chip", "v5e", "--json").expect(RESULT).json
    assert again["lines"] == matmul["lines"]
    assert again["estimate_ms"] == matmul["estimate_ms"]
