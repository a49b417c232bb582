"""Calls the paged attention that ships with jax: one decoding step of 16 sequences over a cache in pages
of 16 tokens.

The range in braces says which integers are drawn: a page index must name a page, a length must fit the
pages.

    kernelwright tune examples/library/paged_attention.py::decode
"""

from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention


# kernelwright: q=bf16[16,32,128] k_pages=bf16[8,2048,16,128] v_pages=bf16[8,2048,16,128]
#   lengths=i32[16]{1..2048} page_indices=i32[16,128]{0..2047}
def decode(q, k_pages, v_pages, lengths, page_indices):
    return paged_attention(q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=4)
