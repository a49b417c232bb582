"""tokamax's published device times as a list of entries, each of which can be rebuilt as a function.

The package `tokamax` carries, for real chips, how long its operations took: per operation a JSON file
whose keys are the arguments (shapes, types, options) and whose values hold the times of each configuration.
An entry is one timed configuration; its name is a hash of what it is, so that results survive a reordering of
the files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import json
import pathlib
import re
import statistics
from typing import Any

# Folder of the package -> chip and the kind of topology that compiles for it.
CHIPS = {"tpu7x": "tpu7x", "tpu_v5_lite": "v5e"}
TOPOLOGIES = {"tpu7x": "tpu7x:2x2x1", "v5e": "v5e:1x1"}

# File of the package -> (operation, implementation, module, class).
# Operations and their derivatives are apart.
FILES = {
    "dot_product_attention": ("attention", "xla", "attention.base", "DotProductAttention"),
    "dot_product_attention_vjp": ("attention_vjp", "xla", "attention.base", "DotProductAttentionVjp"),
    "xla_chunked_dot_product_attention": (
        "attention", "xla_chunked", "attention.xla_chunked", "XlaChunkedDotProductAttention"),
    "pallas_mosaic_tpu_flash_attention": (
        "attention", "pallas", "attention.pallas_mosaic_tpu", "PallasMosaicTpuFlashAttention"),
    "pallas_mosaic_tpu_flash_attention_vjp": (
        "attention_vjp", "pallas", "attention.pallas_mosaic_tpu_vjp", "PallasMosaicTpuFlashAttentionVjp"),
    "linear_softmax_cross_entropy_loss": (
        "cross_entropy", "xla", "linear_softmax_cross_entropy_loss.base", "LinearSoftmaxCrossEntropyLoss"),
    "linear_softmax_cross_entropy_loss_vjp": (
        "cross_entropy_vjp", "xla", "linear_softmax_cross_entropy_loss.base",
        "LinearSoftmaxCrossEntropyLossVjp"),
    "pallas_mosaic_tpu_linear_softmax_cross_entropy_loss": (
        "cross_entropy", "pallas", "linear_softmax_cross_entropy_loss.pallas_mosaic_tpu",
        "PallasMosaicTpuLinearSoftmaxCrossEntropyLoss"),
    "pallas_mosaic_tpu_linear_softmax_cross_entropy_loss_vjp": (
        "cross_entropy_vjp", "pallas", "linear_softmax_cross_entropy_loss.pallas_mosaic_tpu",
        "PallasMosaicTpuLinearSoftmaxCrossEntropyLossVjp"),
    "normalization": ("normalization", "xla", "normalization.base", "Normalization"),
    "normalization_vjp": ("normalization_vjp", "xla", "normalization.base", "NormalizationVjp"),
    "triangle_multiplication": ("triangle", "xla", "triangle_multiplication.base", "TriangleMultiplication"),
    "ragged_dot": ("ragged_dot", "xla", "ragged_dot.base", "RaggedDot"),
    "pallas_mosaic_tpu_ragged_dot": (
        "ragged_dot", "pallas", "ragged_dot.pallas_mosaic_tpu", "PallasMosaicTpuRaggedDot"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Entry:
    """One timed configuration. `key` and `config` are the package's own JSON texts."""

    name: str
    chip: str
    file: str
    operation: str
    implementation: str
    key: str
    config: str
    milliseconds: float
    compile_seconds: float  # what the compile took where it was measured: the cheap ones come first

    @property
    def shape(self) -> str:
        """The arguments in short, the same for every implementation of one problem."""
        arguments = json.loads(self.key)
        for unimportant in ("residuals", "out", "dout"):
            arguments.pop(unimportant, None)
        return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:10]

    def bound(self) -> tuple[Any, Any]:
        """(operation with its configuration, its bound arguments). Needs tokamax."""
        from tokamax._src.autotuning import cache

        _, _, module, name = FILES[self.file]
        op = getattr(importlib.import_module(f"tokamax._src.ops.{module}"), name)()
        adapter = cache._get_cache_adapter(op)
        ((arguments, configs),) = adapter.validate_json(
            json.dumps({self.key: {self.config: _NO_TIME}})
        ).items()
        (config,) = configs
        # A derivative's own derivative is not wanted; configurations of XLA are empty.
        op = op.replace(config=config if self.config != "{}" else None)
        return op, op.bind(**arguments)


_NO_TIME = {"compile_time_ms": 0, "lower_time_ms": 0, "evaluation_times_ms": [0], "metadata": {}}


def data_folder() -> pathlib.Path:
    """The folder of the installed package, found without importing it."""
    spec = importlib.util.find_spec("tokamax")
    if spec is None or spec.origin is None:
        raise SystemExit("tokamax is not installed in this Python: scripts/calibration --help says how")
    return pathlib.Path(spec.origin).parent / "data" / "autotuning"


def load(folder: pathlib.Path) -> tuple[list[Entry], list[str]]:
    """All timed entries, and what could not be read and why."""
    entries: list[Entry] = []
    problems: list[str] = []
    for device, chip in CHIPS.items():
        for path in sorted((folder / device).glob("*.json")):
            if path.stem not in FILES:
                if path.stat().st_size:
                    problems.append(f"{device}/{path.name}: no operation of this harness")
                continue
            text = path.read_text()
            try:
                table = json.loads(text)
            except ValueError as error:
                problems.append(f"{device}/{path.name}: {'empty' if not text else error}")
                continue
            operation, implementation, _, _ = FILES[path.stem]
            for key, configs in table.items():
                for config, figures in configs.items():
                    times = figures.get("evaluation_times_ms") or []
                    if not times:
                        continue
                    digest = hashlib.sha256(f"{chip} {path.stem} {key} {config}".encode()).hexdigest()[:10]
                    name = f"{chip}-{operation}-{implementation}-{digest}"
                    entries.append(
                        Entry(name, chip, path.stem, operation, implementation, key, config,
                              statistics.median(times), figures.get("compile_time_ms", 0) / 1e3)
                    )  # fmt: skip
    return entries, problems


def describe(entry: Entry) -> str:
    """The arguments that matter for the time, in one short line."""
    arguments = json.loads(entry.key)
    parts = []
    for name, value in arguments.items():
        if name in ("residuals", "out", "dout", "precision", "logits_scale", "dropout_rate"):
            continue
        if isinstance(value, str) and re.fullmatch(r"\w+\[[\d,]*\]", value):
            parts.append(f"{name}={value}")
        elif name == "mask" and value:
            parts += [f"{k}={v}" for k, v in value.items() if v not in (None, False)]
        elif name == "group_sizes":
            parts.append(f"groups={len(value) if isinstance(value, list) else value.get('num_groups')}")
        elif value not in (None, False, [], {}) and isinstance(value, (int, float, str)):
            parts.append(f"{name}={value}")
    return " ".join(parts)
