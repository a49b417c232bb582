"""Flags with which the TPU compiler writes its schedule. No other imports: scripts that compile without a
worker use them too, so that what they measure is what the product reads.
"""

from __future__ import annotations

_PASSES = r"final_bundles|final_hlo|pre-finalize-registers-and-allocations"


def dump_flags(folder: str) -> str:
    """Compiler flags that write the schedule with source lines into a folder."""
    return " ".join(
        [
            f"--xla_jf_dump_to={folder}",
            "--xla_jf_dump_llo_text=true",
            f"--xla_jf_dump_llo_pass_label_regex={_PASSES}",
            "--xla_jf_emit_annotations=true",
            "--xla_mosaic_enable_llo_source_annotations=true",
        ]
    )
