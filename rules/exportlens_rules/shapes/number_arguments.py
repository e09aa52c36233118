"""Which arguments of torch's functions are numbers, and what tracing does where tensor data tell them: measured on torch 2.13.

Each by the name of the argument and its position in the function; a method's own tensor is at 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from exportlens.inference.places import Call
from exportlens.inference.values import Sequence, Value

Arguments = tuple[tuple[str, int | None], ...]


def _both(table: dict[str, Arguments]) -> dict[str, Arguments]:
    """The functions of `table` and the methods of the same names."""
    return {f"{home}.{name}": which for name, which in table.items() for home in ("torch", "torch.Tensor")}


def _functional(table: dict[str, Arguments]) -> dict[str, Arguments]:
    return {f"torch.nn.functional.{name}": which for name, which in table.items()}


# Given a tensor, torch reads it out, and strict tracing fails; a number from data is fine.
READ_OUT: dict[str, Arguments] = {
    **_both(
        {
            "select": (("index", 2),),
            "roll": (("shifts", 1),),
            "tril": (("diagonal", 1),),
            "triu": (("diagonal", 1),),
            "kthvalue": (("k", 1),),
            "renorm": (("maxnorm", 3),),
            "bincount": (("minlength", 2),),
            "narrow": (("start", 2),),
        }
    ),
    "torch.randint": (("low", 0), ("high", 1)),
    "torch.Tensor.fill_diagonal_": (("fill_value", 1),),
    **_functional(
        {
            "pad": (("pad", 1),),
            "cross_entropy": (("ignore_index", 4),),
            "nll_loss": (("ignore_index", 4),),
            "celu": (("alpha", 1),),
            "elu": (("alpha", 1),),
            "leaky_relu": (("negative_slope", 1),),
            "softplus": (("beta", 1),),
            "threshold": (("threshold", 1),),
            "hardshrink": (("lambd", 1),),
            "multi_margin_loss": (("margin", 3),),
        }
    ),
}
# Of these, non-strict tracing fails as well.
FAILS_READ_OUT = frozenset({"torch.narrow", "torch.Tensor.narrow"})

_CONVOLUTION: Arguments = (("stride", 3), ("padding", 4), ("dilation", 5), ("groups", 6))
_POOL: Arguments = (("kernel_size", 1), ("stride", 2), ("padding", 3))

# Sizes of what is made (`torch.linspace`, `torch.tril_indices`) are another rule's.
# What torch asks of a number which it is given there, so that no mode takes one that was read out of data, nor a tensor: whether
# it is zero, negative, in a range, or which number it is.
ASKED: dict[str, Arguments] = {
    **_both(
        {
            "chunk": (("chunks", 1),),
            "split": (("split_size_or_sections", 1), ("split_size", 1)),
            "diagonal": (("offset", 1),),
            "diag": (("diagonal", 1),),
            "diag_embed": (("offset", 1),),
            "rot90": (("k", 1),),
            "narrow_copy": (("start", 2),),
            "sub": (("alpha", None),),
            "index_add": (("alpha", None),),
            "histc": (("bins", 1),),
            "logit": (("eps", 1),),
            "isclose": (("rtol", 2), ("atol", 3)),
            "dist": (("p", 2),),
            "norm": (("p", 1),),
            "round": (("decimals", 1),),
        }
    ),
    "torch.Tensor.unfold": (("size", 2), ("step", 3)),
    "torch.Tensor.uniform_": (("from", 1), ("to", 2)),
    "torch.Tensor.normal_": (("mean", 1), ("std", 2)),
    "torch.Tensor.exponential_": (("lambd", 1),),
    "torch.arange": (("step", 2),),
    "torch.hann_window": (("window_length", 0),),
    "torch.hamming_window": (("window_length", 0),),
    "torch.vander": (("N", 1),),
    "torch.fft.fft": (("n", 1),),
    "torch.fft.ifft": (("n", 1),),
    "torch.fft.rfft": (("n", 1),),
    "torch.fft.irfft": (("n", 1),),
    "torch.nn.utils.rnn.pad_sequence": (("padding_value", 2),),
    **_functional(
        {
            "dropout": (("p", 1),),
            "hardtanh": (("min_val", 1), ("max_val", 2)),
            "normalize": (("p", 1),),
            "rrelu": (("lower", 1), ("upper", 2)),
            "embedding": (("padding_idx", 2),),
            "local_response_norm": (("size", 1),),
            "pixel_shuffle": (("upscale_factor", 1),),
            "cross_entropy": (("label_smoothing", 7),),
            "scaled_dot_product_attention": (("scale", None),),
            "instance_norm": (("eps", 7),),
            "poisson_nll_loss": (("eps", 5),),
            "gaussian_nll_loss": (("eps", 4),),
            **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _CONVOLUTION),
            **dict.fromkeys(("avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"), _POOL),
            **dict.fromkeys(
                (f"adaptive_{kind}_pool{rank}d" for kind in ("avg", "max") for rank in (1, 2)),
                (("output_size", 1),),
            ),
        }
    ),
}

# As above, but a tensor is taken there, or is another finding.
ASKED_OF_NUMBERS: dict[str, Arguments] = {
    **dict.fromkeys(
        ("torch.fake_quantize_per_tensor_affine", "torch.quantize_per_tensor"),
        (("scale", 1), ("zero_point", 2)),
    ),
    **{
        f"{home}.{name}": (("q", 1),)
        for home in ("torch", "torch.Tensor")
        for name in ("quantile", "nanquantile")
    },
    "torch.nn.functional.pad": (("value", 3),),
    "torch.nn.functional.smooth_l1_loss": (("beta", 5),),
    "torch.nn.functional.huber_loss": (("delta", 3),),
    "torch.nn.functional.margin_ranking_loss": (("margin", 3),),
    "torch.nn.functional.triplet_margin_loss": (("margin", 3),),
    "torch.nn.functional.cosine_embedding_loss": (("margin", 3),),
    "torch.nn.functional.softshrink": (("lambd", 1),),
    "torch.nn.functional.layer_norm": (("eps", 4),),
    "torch.nn.functional.rms_norm": (("eps", 3),),
    "torch.nn.functional.group_norm": (("eps", 4),),
    "torch.nan_to_num": (("nan", 1), ("posinf", 2), ("neginf", 3)),
    "torch.Tensor.nan_to_num": (("nan", 1), ("posinf", 2), ("neginf", 3)),
    "torch.cdist": (("p", 2),),
    "torch.linalg.matrix_power": (("n", 1),),
    **_both(
        {
            **dict.fromkeys(("addmm", "addmv", "addr"), (("beta", None),)),
            "matrix_power": (("n", 1),),
            "diff": (("n", 1),),
            "float_power": (("exponent", 1),),
        }
    ),
    "torch.normal": (("mean", 0), ("std", 1)),
    "torch.bernoulli": (("p", 1),),
    "torch.Tensor.geometric_": (("p", 1),),
    "torch.Tensor.cauchy_": (("median", 1), ("sigma", 2)),
    "torch.Tensor.log_normal_": (("mean", 1), ("std", 2)),
    "torch.nn.init.normal_": (("mean", 1), ("std", 2)),
    "torch.nn.init.trunc_normal_": (("mean", 1), ("std", 2)),
    "torch.nn.init.uniform_": (("a", 1), ("b", 2)),
    "torch.nn.init.xavier_uniform_": (("gain", 1),),
    "torch.pdist": (("p", 1),),
    "torch.linalg.vector_norm": (("ord", 1),),
    "torch.linalg.pinv": (("rtol", None),),
    "torch.linalg.matrix_rank": (("tol", 1),),
    "torch.polygamma": (("n", 0),),
    "torch.special.polygamma": (("n", 0),),
    "torch.mvlgamma": (("p", 1),),
    "torch.logspace": (("base", 3),),
    "torch.tensor_split": (("indices_or_sections", 1),),
    "torch.trapezoid": (("dx", None),),
    "torch.cumulative_trapezoid": (("dx", None),),
    "torch.signal.windows.gaussian": (("std", None),),
    "torch.fft.fftfreq": (("d", 1),),
    **_functional(
        {
            "hinge_embedding_loss": (("margin", 2),),
            "cosine_similarity": (("eps", 3),),
            "pairwise_distance": (("p", 2), ("eps", 3)),
            "batch_norm": (("momentum", 6), ("eps", 7)),
            **dict.fromkeys(("alpha_dropout", "dropout2d", "feature_alpha_dropout"), (("p", 1),)),
            "scaled_dot_product_attention": (("dropout_p", 4),),
            "unfold": (("kernel_size", 1),),
        }
    ),
}


def given_numbers(place: Call, table: dict[str, Arguments]) -> Iterator[Value]:
    """The values that the call is given for the numbers that `table` names, those in tuples and lists one by one."""
    shift = 1 if place.name.startswith("torch.Tensor.") else 0
    for name, at in table.get(place.name, ()):
        value = place.kwargs.get(name)
        if value is None and at is not None and shift <= at < len(place.args) + shift:
            value = place.args[at - shift]
        if isinstance(value, Sequence):
            yield from value.items or ()
        elif value is not None:
            yield value
