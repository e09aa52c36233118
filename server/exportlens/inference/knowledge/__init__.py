"""What torch does, as data: operators, Tensor attributes, modules, constants, and effects of calls outside
torch.

Generated from an installed torch by scripts/generate_torch_knowledge.py; reading it needs no torch.
"""

from __future__ import annotations

from exportlens.inference.knowledge.model import (
    SOME_NUMBER,
    UNKNOWN,
    Condition,
    Constant,
    Effect,
    EffectKind,
    ExportNote,
    ModuleKnowledge,
    Op,
    Param,
    Property,
    Returns,
    StateEntry,
    TensorFacts,
)
from exportlens.inference.knowledge.rules import dtype_after, promote, rank_after
from exportlens.inference.knowledge.store import (
    canonical_name,
    effect_of,
    export_notes,
    function_names,
    lookup_constant,
    lookup_function,
    lookup_method,
    lookup_module,
    method_names,
    module_names,
    tensor_property,
    torch_version,
)

__all__ = [
    "SOME_NUMBER",
    "UNKNOWN",
    "Condition",
    "Constant",
    "Effect",
    "EffectKind",
    "ExportNote",
    "ModuleKnowledge",
    "Op",
    "Param",
    "Property",
    "Returns",
    "StateEntry",
    "TensorFacts",
    "canonical_name",
    "dtype_after",
    "effect_of",
    "export_notes",
    "function_names",
    "lookup_constant",
    "lookup_function",
    "lookup_method",
    "lookup_module",
    "method_names",
    "module_names",
    "promote",
    "rank_after",
    "tensor_property",
    "torch_version",
]
