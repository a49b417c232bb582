"""The kernels of this folder and what the rules make of them: each rule on one where it alone pays and on
one where it has to refuse, and kernels on which two rules together reach more than either alone."""

from __future__ import annotations

from dataclasses import dataclass

V5E, V5P, V6E, TPU7X = "v5e", "v5p", "v6e", "tpu7x"


@dataclass(frozen=True)
class Gain:
    """A rule, the kernel on which it alone gives at least `ratio` on the chip, smaller inputs to check at."""

    rule: str
    file: str
    function: str
    chip: str
    check: str
    ratio: float = 1.1
    quick: bool = False  # part of the default tier
    allowed: str = "reassociation"
    without: tuple[str, ...] = ()  # gates that are left out, see WIDTHS


@dataclass(frozen=True)
class Refusal:
    """A kernel on which the rule refuses, with a word of its reason."""

    rule: str
    file: str
    function: str
    chip: str
    word: str


@dataclass(frozen=True)
class Pair:
    """Two rules on one kernel, in the order in which they are applied."""

    rules: tuple[str, str]
    file: str
    function: str
    chip: str
    check: str
    without: tuple[str, ...] = ()


# Operands of 32 bits made narrower are what the gate of precision is there to reject.
WIDTHS = ("G46",)

GAINS = [
    Gain("scratch-accumulator", "sum_in_output", "project", V5P, "x=bf16[512,512] w=bf16[512,512]"),
    Gain(
        "last-step-epilogue",
        "gelu_each_step",
        "up",
        TPU7X,
        "x=bf16[512,512] w=bf16[512,512] b=bf16[1,512]",
    ),
    Gain(
        "mxu-operands",
        "widened",
        "product",
        V5E,
        "x=bf16[512,1024] w=bf16[1024,512]",
        ratio=3.0,
    ),
    Gain(
        "mxu-operands",
        "widened",
        "product_f32",
        V5E,
        "x=f32[512,1024] w=f32[1024,512]",
        ratio=2.0,
        allowed="lower-precision",
        without=WIDTHS,
    ),
    Gain(
        "transposed-operand",
        "quantised_rows",
        "linear",
        V5E,
        "x=bf16[128,256] w=i8[512,256] s=f32[1,512]",
    ),
    Gain("dimension-semantics", "serial", "norm", V5P, "x=bf16[256,512]", ratio=1.5),
    Gain(
        "clamped-index-map",
        "causal",
        "attention",
        V6E,
        "q=bf16[1,1024,128] k=bf16[1,1024,128] v=bf16[1,1024,128]",
    ),
    Gain("hoist-from-loop", "gated_rows", "gate", V5P, "x=bf16[1024,256] g=bf16[64,256]"),
    Gain(
        "hoist-from-steps",
        "angles",
        "rotate",
        V5E,
        "x=f32[3,1024,128] angle=f32[1024,128]",
        ratio=1.5,
        quick=True,
    ),
    Gain("exp2", "radial", "radial", V5E, "x=f32[128,128] centre=f32[64] w=f32[64]"),
    Gain("one-pass-statistics", "group_norm", "norm", TPU7X, "x=bf16[128,64,128]"),
    Gain(
        "full-lanes",
        "rotary",
        "rotary",
        V6E,
        "x=bf16[4096,128] cos=bf16[2048,128] sin=bf16[2048,128]",
        quick=True,
    ),
    Gain("double-buffering", "single_buffer", "tanh", V6E, "x=f32[512,256]"),
    Gain("vmem-limit", "greedy_limit", "mlp", TPU7X, "x=bf16[512,512] y=bf16[512,512]"),
]

REFUSALS = [
    Refusal("scratch-accumulator", "sum_in_output", "logits", V5P, "uses the 32-bit sums"),
    Refusal("last-step-epilogue", "gelu_each_step", "gate", TPU7X, "stores another block"),
    Refusal("mxu-operands", "widened", "product_f32", V5E, "lower-precision"),
    Refusal("transposed-operand", "quantised_rows", "plain", V5E, "the compiler folds"),
    Refusal("dimension-semantics", "serial", "total", V5P, "visits a block of an output again"),
    Refusal("clamped-index-map", "causal", "later_keys", V6E, "from above"),
    Refusal("hoist-from-loop", "gated_rows", "linear", V5P, "only loaded and cast"),
    Refusal("hoist-from-steps", "angles", "rotate_apart", V5E, "depends on what changes"),
    Refusal("exp2", "radial", "softmax", V5E, "no exponential has a constant factor"),
    Refusal("one-pass-statistics", "group_norm", "sample_norm", TPU7X, "a correction"),
    Refusal("full-lanes", "rotary", "rotary_wide", V6E, "fills whole registers"),
    Refusal("double-buffering", "single_buffer", "linear", V6E, "stays the same"),
    Refusal("vmem-limit", "greedy_limit", "large", TPU7X, "needs about"),
]

PAIRS = [
    Pair(
        ("mxu-operands", "last-step-epilogue"),
        "pairs",
        "widened_gelu",
        TPU7X,
        "x=bf16[512,512] w=bf16[512,512]",
    ),
    Pair(
        ("full-lanes", "double-buffering"),
        "pairs",
        "buffered_rotary",
        V6E,
        "x=bf16[4096,128] cos=bf16[2048,128] sin=bf16[2048,128]",
    ),
    Pair(("exp2", "dimension-semantics"), "radial", "radial", V5P, "x=f32[128,128] centre=f32[64] w=f32[64]"),
    Pair(
        ("last-step-epilogue", "vmem-limit"),
        "pairs",
        "greedy_gelu",
        TPU7X,
        "x=bf16[512,512] w=bf16[512,512]",
    ),
    Pair(
        ("one-pass-statistics", "dimension-semantics"),
        "pairs",
        "serial_group_norm",
        V5P,
        "x=bf16[128,64,128]",
    ),
]
