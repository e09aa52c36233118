"""Sparse tensors made in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class SparseTensor(CallOf):
    """A sparse tensor is built while tracing.

    ## What it does
    Finds `torch.sparse_coo_tensor`, `torch.sparse_csr_tensor` and `torch.sparse.FloatTensor` in traced code.
    `x.to_sparse()` is fine.

    ## Why it matters
    Strict tracing does not support making them.

    ## References
    - https://docs.pytorch.org/docs/stable/sparse.html
    """

    code = "EXL607"
    name = "sparse-tensor"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "which layout what follows takes is not provable: keep the tensor dense, or use `index_add` and "
        "`scatter_add` on its entries"
    )
    callees = (
        "torch.sparse_coo_tensor",
        "torch.sparse_csr_tensor",
        "torch.sparse_csc_tensor",
        "torch.sparse.FloatTensor",
        "torch.sparse.LongTensor",
    )
    wrong = "makes a sparse tensor while tracing: strict tracing fails."
    advice = "Use index_add or scatter on a dense tensor."
    examples = (
        Example(
            bad="""
def forward(self, i, v):
    return torch.sparse_coo_tensor(i, v, (2, 2)).to_dense()
""",
            good="""
def forward(self, i, v):
    return torch.zeros(2, 2).index_put((i[0], i[1]), v, accumulate=True)
""",
            inputs="(torch.tensor([[0, 1], [1, 0]]), torch.randn(2))",
        ),
    )
