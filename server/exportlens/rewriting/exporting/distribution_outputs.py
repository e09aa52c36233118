"""Distributions in the output: torch's own classes, registered with what they are made of.

The parameters are those of `arg_constraints` in torch/distributions/*.py. A class of torch's is one for the whole
process: it is registered where nothing else has done so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exportlens.finding import Applicability, Edit, Fix, Range, Refusal
from exportlens.inference.values import Instance, Mapping_, Named, Sequence, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import behind_imports
from exportlens.rewriting.code.imports import document_imports, import_edit, spelled

PACKAGE = "torch.distributions."
# Of what may be given as one or the other, what is computed without a division.
_PARAMETERS = {
    "Bernoulli": ("logits",),
    "Beta": ("concentration1", "concentration0"),
    "Categorical": ("logits",),
    "Cauchy": ("loc", "scale"),
    "Dirichlet": ("concentration",),
    "Exponential": ("rate",),
    "Gamma": ("concentration", "rate"),
    "Gumbel": ("loc", "scale"),
    "Laplace": ("loc", "scale"),
    "LogNormal": ("loc", "scale"),
    "MultivariateNormal": ("loc", "scale_tril"),
    "Normal": ("loc", "scale"),
    "OneHotCategorical": ("logits",),
    "Poisson": ("rate",),
    "StudentT": ("df", "loc", "scale"),
    "Uniform": ("low", "high"),
}


def distributions_in(value: Value, depth: int = 0) -> Iterator[Instance]:
    """The distributions of torch's in `value`, and those that they are made of."""
    inner: Iterable[Value] = ()
    if isinstance(value, Instance) and isinstance(value.cls, Named) and value.cls.name.startswith(PACKAGE):
        yield value
        inner = value.arguments.values()
    elif isinstance(value, Sequence):
        inner = value.items or ()
    elif isinstance(value, Mapping_):
        inner = value.items.values()
    if depth < 6:
        for each in inner:
            for option in options(each):
                yield from distributions_in(option, depth + 1)


def register_distributions(found: Iterable[Instance], context: RewriteContext) -> Fix | Refusal:
    """The classes of the distributions `found`, registered behind the imports."""
    names = list(
        dict.fromkeys(each.cls.name.rpartition(".")[2] for each in found if isinstance(each.cls, Named))
    )
    strange = [name for name in names if name != "Independent" and name not in _PARAMETERS]
    if strange:
        return Refusal(
            f"a `{strange[0]}` is not made of tensors alone: return the tensors that it is made of"
        )
    if names == ["Independent"]:
        return Refusal("of what distribution the `Independent` is made is not known: return its tensors")
    at = behind_imports(context.document)
    if at is None:
        return Refusal("the file imports nothing: register the distribution where it is run")
    nl = "\r\n" if "\r\n" in context.document.text else "\n"
    modules = document_imports(context.document)
    torch = spelled(modules, "torch")
    lines = [line for name in names for line in ("", *_registration(name, torch or "torch"))]
    edits = [Edit(Range(at, at), nl.join(lines) + nl)]
    if torch is None:
        edits.insert(0, import_edit(context.document, "import torch"))
    listed = ", ".join(f"`{name}`" for name in names)
    return Fix(f"Register {listed} with torch.export", tuple(edits), Applicability.UNSAFE)


def _registration(name: str, torch: str) -> list[str]:
    cls = f"{torch}.distributions.{name}"
    if name == "Independent":
        flatten = "([value.base_dist], value.reinterpreted_batch_ndims)"
        make = f"lambda leaves, ndims: {cls}(leaves[0], ndims, validate_args=False)"
    else:
        parts = _PARAMETERS[name]
        flatten = f"([{', '.join(f'value.{each}' for each in parts)}], None)"
        given = ", ".join(f"{each}=leaves[{index}]" for index, each in enumerate(parts))
        make = f"lambda leaves, _: {cls}({given}, validate_args=False)"
    return [
        f"if {cls} not in {torch}.utils._pytree.SUPPORTED_NODES:",
        f"    {torch}.utils._pytree.register_pytree_node(",
        f"        {cls},",
        f"        lambda value: {flatten},",
        f"        {make},",
        f'        serialized_type_name="{PACKAGE}{name}",',
        "    )",
    ]
