"""Pure parts of the worker: comparing, drawing, reading imports, filters, command lines."""

from __future__ import annotations

import pathlib
import struct

import ml_dtypes
import numpy as np
import pytest
from kernelwright.v1 import ir_pb2, worker_pb2
from kernelwright_worker import launcher
from kernelwright_worker.imports import import_root, installed_imports
from kernelwright_worker.jobs import MAX_LOG_BYTES, LogLines
from kernelwright_worker.judging import compare, distributions, tensors
from kernelwright_worker.sandbox import bubblewrap, landlock, paths, seccomp

ROWS = np.random.default_rng(7).standard_normal((32, 64)).astype(np.float32)


def difference(
    candidate: tensors.Array, native: tensors.Array, truth: tensors.Array, nan_counts: bool = True
) -> compare.Difference:
    return compare.compare(candidate, native, truth, native, factor=2.0, floor=0.0, nan_counts=nan_counts)


def test_the_reference_itself_passes() -> None:
    narrow = ROWS.astype(ml_dtypes.bfloat16)
    found = difference(narrow, narrow, ROWS)
    assert found.passed
    assert 0 < found.reference_error < 2**-7


def test_a_small_row_cannot_hide() -> None:
    truth = ROWS.copy()
    truth[3] *= 1e-3
    wrong = truth.copy()
    wrong[3] = 0
    found = difference(wrong, truth, truth)
    assert not found.passed
    assert "[3, " in found.detail


@pytest.mark.parametrize("scale", [1e-3, 1e-4])
def test_errors_above_the_floor_fail_and_below_pass(scale: float) -> None:
    wrong = ROWS + np.float32(scale) * np.abs(ROWS).max(-1, keepdims=True)
    assert not difference(wrong, ROWS, ROWS).passed
    assert difference(ROWS * np.float32(1 + 1e-6), ROWS, ROWS).passed


def test_not_a_number_must_be_at_the_same_places() -> None:
    reference = ROWS.copy()
    reference[0, 0], reference[1, 1] = np.nan, np.inf
    assert difference(reference, reference, reference).passed
    without = reference.copy()
    without[0, 0] = 1
    assert not difference(without, reference, reference).passed
    assert difference(without, reference, reference, nan_counts=False).passed
    more = reference.copy()
    more[2, 2] = np.nan
    assert not difference(more, reference, reference).passed
    assert difference(more, reference, reference, nan_counts=False).passed, "blocks decide where"
    assert not difference(more, ROWS, ROWS, nan_counts=False).passed, "the reference defines all of it"
    more[3, 3] += 100
    assert not difference(more, reference, reference, nan_counts=False).passed
    other_sign = reference.copy()
    other_sign[1, 1] = -np.inf
    assert not difference(other_sign, reference, reference).passed
    unwritten = reference.copy()
    unwritten[5] = np.nan
    assert difference(unwritten, reference, reference).uninitialised


def test_what_the_reference_does_not_define_is_not_compared() -> None:
    native, truth = ROWS.copy(), ROWS.copy()
    native[0, 0] = np.inf  # overflows in its own types alone
    anything = ROWS.copy()
    anything[0, 0] = 12345
    assert difference(anything, native, truth).passed


def test_integers_are_compared_exactly() -> None:
    native = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert difference(native, native, native).passed
    assert "1 of 6" in difference(native + (native == 4), native, native).detail
    assert difference(np.bool_(True) & (native > 2), native > 2, native > 2).passed


@pytest.mark.parametrize("shape", [(), (0,), (5,), (0, 4), (3, 0), (2, 3, 4)])
def test_shapes_of_all_kinds(shape: tuple[int, ...]) -> None:
    values = np.ones(shape, np.float32)
    assert difference(values, values, values).passed
    for draw in distributions.DISTRIBUTIONS.values():
        assert draw(np.random.default_rng(0), shape).shape == shape


def specification(dtype: str, *dims: int) -> worker_pb2.InputSpec:
    kind = ir_pb2.TensorType(dtype=dtype, dims=dims)
    return worker_pb2.InputSpec(path="x", tensor=worker_pb2.TensorInput(type=kind))


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn", "int8", "int4", "uint32", "bool"]
)
def test_drawing_is_repeatable_and_depends_on_the_seed(dtype: str) -> None:
    spec = specification(dtype, 64, 64)
    for name in distributions.DISTRIBUTIONS:
        first, again = distributions.draw([spec], name, 1, 0), distributions.draw([spec], name, 1, 0)
        assert first == again
        assert tensors.encode(tensors.decode(first[0])) == first[0]
    values = [distributions.draw([spec], "normal", *p)[0].data for p in ((1, 0), (2, 0), (1, 1))]
    assert len(set(values)) == 3


def test_normals_are_drawn_wide_and_cast() -> None:
    values = tensors.decode(distributions.draw([specification("bfloat16", 512, 512)], "normal", 3, 0)[0])
    wide = values.astype(np.float64)
    assert len(np.unique(wide)) > 1000
    assert abs(wide.mean()) < 0.01


def test_integers_stay_in_their_range() -> None:
    spec = specification("int32", 1000)
    spec.tensor.has_range, spec.tensor.low, spec.tensor.high = True, -3, 5
    values = tensors.decode(distributions.draw([spec], "normal", 3, 0)[0])
    assert (values.min(), values.max()) == (-3, 5)


def test_perturbing_moves_by_one_unit_in_the_last_place() -> None:
    before = tensors.encode(ROWS)
    after = tensors.decode(distributions.perturb([before], 1)[0])
    assert np.all(np.abs(after - ROWS) <= np.spacing(np.abs(ROWS)))
    assert np.count_nonzero(after != ROWS) == ROWS.size


def test_imports_are_found_without_running(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pack" / "sub").mkdir(parents=True)
    for folder in (tmp_path / "pack", tmp_path / "pack" / "sub"):
        (folder / "__init__.py").write_text("import orbax\n")
    (tmp_path / "pack" / "helper.py").write_text("import os, scipy.linalg\nfrom flax import nnx\n")
    entry = tmp_path / "pack" / "sub" / "entry.py"
    overlay = {
        str(
            entry
        ): b"import jax\nfrom .. import helper\nfrom . import missing\nfrom einops import rearrange\n"
    }
    assert import_root(str(entry)) == (str(tmp_path), "pack.sub.entry")
    found = installed_imports(str(entry), overlay, {"jax"})
    assert found == ("einops", "flax", "orbax", "scipy.linalg") or found == ("einops", "flax", "scipy.linalg")
    for text in (b"def", b"\xff\xfe", b"(" * 5000, b"x = " + b"-" * 100_000 + b"1"):
        assert installed_imports(str(tmp_path / "e.py"), {str(tmp_path / "e.py"): text}, set()) == ()


def test_log_lines_are_bounded() -> None:
    log = LogLines()
    assert log.feed(b"one\ntw") == ["one"]
    assert log.feed(b"o\r\n") == ["two"]
    assert [len(t) for t in log.feed(b"x" * 10_000)] == [4096, 4096]
    assert [len(t) for t in log.finish()] == [10_000 - 2 * 4096]
    total = sum(len(t) + 1 for _ in range(3000) for t in log.feed(b"y" * 1000 + b"\n"))
    assert total < MAX_LOG_BYTES + 8192
    assert len(log.last) == 20
    assert all(len(t.encode()) <= 4096 for t in LogLines().feed(b"\xff" * 4096 + b"\n"))


def run_filter(program: bytes, number: int, architecture: int, first_argument: int = 0) -> int:
    """A small interpreter of classic BPF, for the instructions that the filter uses."""
    data = struct.pack("=IIQQ", number, architecture, 0, first_argument)
    code = [struct.unpack("=HBBI", program[i : i + 8]) for i in range(0, len(program), 8)]
    accumulator = position = 0
    while True:
        operation, if_true, if_false, value = code[position]
        position += 1
        if operation == 0x20:
            accumulator = int(struct.unpack_from("=I", data, value)[0])
        elif operation == 0x06:
            return int(value)
        else:
            taken = {
                0x15: accumulator == value,
                0x45: bool(accumulator & value),
                0x35: accumulator >= value,
            }[operation]
            position += if_true if taken else if_false


@pytest.mark.parametrize(("machine", "audit"), [("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)])
def test_the_system_call_filter(machine: str, audit: int) -> None:
    program = seccomp.build_filter(machine)
    allow, refuse = 0x7FFF0000, 0x00050001
    column = 0 if machine == "x86_64" else 1
    for numbers in seccomp._DENIED.values():
        number = numbers[column]
        if number is not None:
            assert run_filter(program, number, audit) == refuse
    read, socket, clone = ((0, 41, 56), (63, 198, 220))[column]
    assert run_filter(program, read, audit) == allow
    assert run_filter(program, socket, audit, 1) == allow
    assert run_filter(program, socket, audit, 2) == refuse
    assert run_filter(program, clone, audit, 0x11) == allow
    for flag in (0x10000000, 0x20000000, 0x00020000, 0x40000000):
        assert run_filter(program, clone, audit, flag) == refuse
    assert run_filter(program, 435, audit) == 0x00050026
    assert run_filter(program, read, 0x40000003) == 0x80000000
    if machine == "x86_64":
        assert run_filter(program, 0x40000000 | 101, audit) == refuse


def test_the_launcher_takes_the_strongest_and_refuses_to_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "find", lambda: "/usr/bin/bwrap")
    monkeypatch.setattr(bubblewrap, "probe", lambda _path, _root: "")
    assert launcher.choose("auto") == ("bubblewrap", "", "/usr/bin/bwrap")
    monkeypatch.setattr(bubblewrap, "probe", lambda _path, _root: "AppArmor denies it: do this")
    monkeypatch.setattr(landlock, "abi", lambda: 7)
    assert launcher.choose("auto")[:2] == ("landlock", "AppArmor denies it: do this")
    assert launcher.choose("bubblewrap")[0] == ""
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    monkeypatch.setattr(bubblewrap, "find", lambda: None)
    level, detail, _path = launcher.choose("auto")
    assert level == ""
    assert "apt-get install bubblewrap" in detail and "--sandbox none" in detail
    assert launcher.choose("none")[0] == "none"


def test_homes_are_never_shown_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "kernel.py").write_text("")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "documents").mkdir()
    shown = bubblewrap.visible_paths([str(tmp_path)])
    assert str(tmp_path / "kernel.py") in shown and str(tmp_path / "pack") in shown
    assert str(tmp_path) not in shown
    assert str(tmp_path / ".ssh") not in shown and str(tmp_path / "documents") not in shown


def test_nested_paths_are_bound_once(tmp_path: pathlib.Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "ab").mkdir()
    found = paths.minimal(
        [str(inner), str(tmp_path / "a"), str(tmp_path / "ab"), str(tmp_path / "none"), "/"]
    )
    assert found == [str(tmp_path / "a"), str(tmp_path / "ab")]
