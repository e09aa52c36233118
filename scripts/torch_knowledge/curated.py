"""Signatures of the C functions of torch that have neither an aten schema nor a Python signature.

Sources: torch/_C/_VariableFunctions.pyi and torch/_C/__init__.pyi of the release named in the data.
tests/inference/ test_knowledge.py calls them to prove what is said here.
"""

from __future__ import annotations

from typing import Any

from torch_knowledge.surface import Overload, Surface

RETURNS: dict[str, Any] = {
    **{
        f"torch.{name}": "bool"
        for name in (
            "is_tensor",
            "is_storage",
            "is_deterministic_algorithms_enabled",
            "is_warn_always_enabled",
            "is_anomaly_check_nan_enabled",
            "can_cast",
            "is_distributed",
            "sym_not",
        )
    },
    **{
        f"torch.{name}": "none"
        for name in (
            "save",
            "set_default_dtype",
            "set_default_device",
            "set_default_tensor_type",
            "set_printoptions",
            "set_rng_state",
            "set_warn_always",
            "use_deterministic_algorithms",
            "set_float32_matmul_precision",
            "set_deterministic_debug_mode",
            "set_num_interop_threads",
            "set_anomaly_enabled",
            "set_autocast_dtype",
            "set_autocast_cache_enabled",
            "_assert",
        )
    },
    "torch.nn.functional.sigmoid": "tensor float first",
    "torch.nn.functional.tanh": "tensor float first",
    "torch.nn.functional.upsample": "tensor same first",
    "torch.nn.functional.normalize": "tensor same first",
    "torch.nn.functional.embedding": "tensor second embedding",
    "torch.result_type": "dtype",
    "torch.promote_types": "dtype",
    "torch.sym_int": "int",
    "torch.sym_float": "float",
    "torch.sym_max": "int",
    "torch.sym_min": "int",
    "torch.seed": "int",
    "torch.initial_seed": "int",
    "torch.get_float32_matmul_precision": "str",
    "torch.typename": "str",
    "torch.broadcast_shapes": "size",
    "torch.chain_matmul": "tensor same -",
    "torch.einsum": "tensor - -",
    "torch.tensor": "tensor numbers nesting",
    "torch.as_tensor": "tensor numbers nesting",
    "torch.autograd.grad": ["list", "tensor"],
    "torch.autograd.backward": "none",
    "torch.nn.utils.parameters_to_vector": "tensor same =1",
    "torch.nn.utils.rnn.pad_sequence": "tensor same first+1",
}

_FACTORY = ["dtype:dtype?=None", "device:device?=None", "requires_grad:bool=False"]


def _cast(dtype: str) -> Overload:
    return Overload(
        ["self:tensor", "memory_format:memory_format?=None"], f"tensor ={dtype} first", aliases=[0]
    )


def _plain(params: list[str], returns: Any, flags: str = "", **more: Any) -> Overload:
    return Overload(params, returns, set(flags), **more)


FUNCTIONS: dict[str, list[Overload]] = {
    "torch.tensor": [_plain(["data:any", "|", *_FACTORY, "pin_memory:bool=False"], "tensor")],
    "torch.as_tensor": [
        _plain(["data:any", "dtype:dtype?=None", "device:device?=None"], "tensor", aliases=[0])
    ],
    "torch.asarray": [
        _plain(
            ["obj:any", "|", *_FACTORY[:2], "copy:bool?=None", "requires_grad:bool=False"],
            "tensor",
            aliases=[0],
        )
    ],
    "torch.from_numpy": [_plain(["ndarray:any"], "tensor", aliases=[0])],
    "torch.frombuffer": [
        _plain(
            ["buffer:any", "|", "dtype:dtype", "count:int=-1", "offset:int=0", "requires_grad:bool=False"],
            "tensor - =1",
            aliases=[0],
        )
    ],
    "torch.get_default_dtype": [_plain([], "dtype")],
    "torch.get_autocast_dtype": [_plain(["device_type:str"], "dtype")],
    "torch.get_autocast_gpu_dtype": [_plain([], "dtype")],
    "torch.get_autocast_cpu_dtype": [_plain([], "dtype")],
    "torch.get_num_threads": [_plain([], "int")],
    "torch.get_num_interop_threads": [_plain([], "int")],
    "torch.is_grad_enabled": [_plain([], "bool")],
    "torch.is_inference_mode_enabled": [_plain([], "bool")],
    "torch.is_autocast_enabled": [_plain(["device_type:str=cuda"], "bool")],
    "torch.is_autocast_cpu_enabled": [_plain([], "bool")],
    "torch.is_autocast_cache_enabled": [_plain([], "bool")],
    "torch.is_anomaly_enabled": [_plain([], "bool")],
    "torch.set_autocast_enabled": [_plain(["device_type:any", "enabled:bool=True"], "none")],
    "torch.set_num_threads": [_plain(["num:int"], "none")],
    "torch.set_flush_denormal": [_plain(["mode:bool"], "bool")],
    "torch.clear_autocast_cache": [_plain([], "none")],
    "torch.einsum": [_plain(["equation:any", "*operands:any"], "tensor")],
    "torch.unique": [
        _plain(
            [
                "input:tensor",
                "sorted:bool=True",
                "return_inverse:bool=False",
                "return_counts:bool=False",
                "dim:int?=None",
            ],
            "any",
        )
    ],
    "torch.unique_consecutive": [
        _plain(
            ["input:tensor", "return_inverse:bool=False", "return_counts:bool=False", "dim:int?=None"], "any"
        )
    ],
    "torch.lu": [
        _plain(
            ["A:tensor", "pivot:bool=True", "get_infos:bool=False", "out:any=None"],
            ["tuple", "tensor", "tensor"],
        )
    ],
    "torch.spmm": [_plain(["input:tensor", "mat2:tensor"], "tensor")],
    "torch.dsmm": [_plain(["input:tensor", "mat2:tensor"], "tensor")],
    "torch.sym_sum": [_plain(["args:any"], "int")],
}

METHODS: dict[str, list[Overload]] = {
    "float": [_cast("float32")],
    "double": [_cast("float64")],
    "half": [_cast("float16")],
    "bfloat16": [_cast("bfloat16")],
    "long": [_cast("int64")],
    "int": [_cast("int32")],
    "short": [_cast("int16")],
    "char": [_cast("int8")],
    "byte": [_cast("uint8")],
    "bool": [_cast("bool")],
    "cfloat": [_cast("complex64")],
    "cdouble": [_cast("complex128")],
    # The tensor itself where the dtypes are the same.
    "type_as": [_plain(["self:tensor", "other:tensor"], "tensor second first", aliases=[0])],
    "cpu": [_plain(["self:tensor", "memory_format:memory_format?=None"], "tensor same first", aliases=[0])],
    **{
        name: [
            _plain(
                [
                    "self:tensor",
                    "device:any=None",
                    "non_blocking:bool=False",
                    "memory_format:memory_format?=None",
                ],
                "tensor same first",
                aliases=[0],
            )
        ]
        for name in ("cuda", "xpu", "ipu", "mtia")
    },
    "to": [
        _plain(
            [
                "self:tensor",
                "dtype:dtype",
                "non_blocking:bool=False",
                "copy:bool=False",
                "|",
                "memory_format:memory_format?=None",
            ],
            "tensor - first",
            aliases=[0],
        ),
        _plain(
            [
                "self:tensor",
                "other:tensor",
                "non_blocking:bool=False",
                "copy:bool=False",
                "|",
                "memory_format:memory_format?=None",
            ],
            "tensor second first",
            aliases=[0],
        ),
        _plain(
            [
                "self:tensor",
                "device:device?=None",
                "dtype:dtype?=None",
                "non_blocking:bool=False",
                "copy:bool=False",
                "|",
                "memory_format:memory_format?=None",
            ],
            "tensor same first",
            aliases=[0],
        ),
    ],
    "type": [
        _plain(["self:tensor"], "str"),
        _plain(
            ["self:tensor", "dtype:any", "non_blocking:bool=False", "**kwargs:any"],
            "tensor - first",
            aliases=[0],
        ),
    ],
    "tolist": [_plain(["self:tensor"], ["list", "number"], "d")],
    "numpy": [_plain(["self:tensor", "|", "force:bool=False"], "array", "h", aliases=[0])],
    "new": [_plain(["self:tensor", "*args:any", "**kwargs:any"], "tensor same -")],
    "new_tensor": [_plain(["self:tensor", "data:any", *_FACTORY], "tensor same -")],
    "data_ptr": [_plain(["self:tensor"], "int", "h")],
    "const_data_ptr": [_plain(["self:tensor"], "int", "h")],
    "element_size": [_plain(["self:tensor"], "int")],
    "ndimension": [_plain(["self:tensor"], "int")],
    "dim": [_plain(["self:tensor"], "int")],
    "nelement": [_plain(["self:tensor"], "int")],
    "numel": [_plain(["self:tensor"], "int")],
    "size": [_plain(["self:tensor"], "size"), _plain(["self:tensor", "dim:int"], "int")],
    "stride": [_plain(["self:tensor"], "size"), _plain(["self:tensor", "dim:int"], "int")],
    "storage_offset": [_plain(["self:tensor"], "int")],
    "get_device": [_plain(["self:tensor"], "int")],
    "is_contiguous": [_plain(["self:tensor", "|", "memory_format:memory_format?=None"], "bool")],
    "is_same_size": [_plain(["self:tensor", "other:tensor"], "bool")],
    "apply_": [_plain(["self:tensor", "callable:any"], "tensor same first", "h", mutates=[0], aliases=[0])],
    "map_": [
        _plain(
            ["self:tensor", "tensor:tensor", "callable:any"],
            "tensor same first",
            "h",
            mutates=[0],
            aliases=[0],
        )
    ],
    "map2_": [
        _plain(
            ["self:tensor", "x:tensor", "y:tensor", "callable:any"],
            "tensor same first",
            "h",
            mutates=[0],
            aliases=[0],
        )
    ],
    "where": [_plain(["self:tensor", "condition:tensor", "other:any"], "tensor - broadcast")],
    "as_subclass": [_plain(["self:tensor", "cls:any"], "tensor same first", aliases=[0])],
    "polygamma": [_plain(["self:tensor", "n:int"], "tensor float first", "p")],
    "record_stream": [_plain(["self:tensor", "stream:any"], "none")],
    "untyped_storage": [_plain(["self:tensor"], "any")],
    "storage": [_plain(["self:tensor"], "any")],
    "unique": [
        _plain(
            [
                "self:tensor",
                "sorted:bool=True",
                "return_inverse:bool=False",
                "return_counts:bool=False",
                "dim:int?=None",
            ],
            "any",
            "s",
        )
    ],
    "requires_grad_": [_plain(["self:tensor", "requires_grad:bool=True"], "self", aliases=[0])],
    "retain_grad": [_plain(["self:tensor"], "none")],
    "backward": [
        _plain(
            [
                "self:tensor",
                "gradient:tensor?=None",
                "retain_graph:bool?=None",
                "create_graph:bool=False",
                "inputs:any=None",
            ],
            "none",
        )
    ],
    "is_floating_point": [_plain(["self:tensor"], "bool")],
    "is_complex": [_plain(["self:tensor"], "bool")],
    "is_signed": [_plain(["self:tensor"], "bool")],
    "is_shared": [_plain(["self:tensor"], "bool")],
    "is_pinned": [_plain(["self:tensor"], "bool")],
    "is_coalesced": [_plain(["self:tensor"], "bool")],
    "is_inference": [_plain(["self:tensor"], "bool")],
    "is_set_to": [_plain(["self:tensor", "tensor:tensor"], "bool")],
    "register_hook": [_plain(["self:tensor", "hook:any"], "any")],
    "dim_order": [_plain(["self:tensor", "|", "ambiguity_check:any=False"], "size")],
}

_PREDICATES = (
    "is_floating_point",
    "is_complex",
    "is_signed",
    "is_conj",
    "is_neg",
    "is_inference",
    "is_same_size",
)

PROPERTIES: dict[str, tuple[Any, bool]] = {
    "shape": ("size", False),
    "ndim": ("int", False),
    "dtype": ("dtype", False),
    "device": ("device", False),
    "layout": ("layout", False),
    "itemsize": ("int", False),
    "nbytes": ("int", False),
    "T": ("tensor same first", True),
    "mT": ("tensor same first", True),
    "H": ("tensor same first", True),
    "mH": ("tensor same first", True),
    "real": ("tensor real first", True),
    "imag": ("tensor real first", True),
    "data": ("tensor same first", True),
    "grad": ("any", False),
    "grad_fn": ("any", False),
    "grad_dtype": ("any", False),
    "requires_grad": ("bool", False),
    "retains_grad": ("bool", False),
    "is_leaf": ("bool", False),
    "name": ("any", False),
    "names": ("any", False),
    "output_nr": ("int", False),
    "volatile": ("bool", False),
    "_version": ("int", False),
    "_base": ("any", True),
    **{
        f"is_{kind}": ("bool", False)
        for kind in (
            "cpu",
            "cuda",
            "ipu",
            "maia",
            "meta",
            "mkldnn",
            "mps",
            "mtia",
            "nested",
            "quantized",
            "sparse",
            "sparse_csr",
            "vulkan",
            "xla",
            "xpu",
        )
    },
    "__cuda_array_interface__": ("any", True),
}

_POOLS = (
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
)
_PAIR = ["tuple", "tensor same first", "tensor =int64 first"]


def _unique(receiver: str, *, consecutive: bool) -> list[Overload]:
    """The four shapes of unique's result."""
    found = []
    for inverse in (False, True):
        for counts in (False, True):
            params = [receiver] if consecutive else [receiver, "sorted:bool=True"]
            for name, given in (("return_inverse", inverse), ("return_counts", counts)):
                params.append(f"{name}:true" if given else f"{name}:false=False")
            if counts or inverse:
                first = next(index for index, row in enumerate(params) if row.endswith(":true"))
                params.insert(min(first, len(params)), "|")
            items = [
                "tensor same one-dim",
                # As many dimensions as the input, or one where `dim` is given: no rule says that.
                *(["tensor =int64"] if inverse else []),
                *(["tensor =int64 =1"] if counts else []),
            ]
            returns: Any = items[0] if len(items) == 1 else ["tuple", *items]
            found.append(_plain([*params, "dim:int?=None"], returns, "s"))
    return found


def _nonzero(receiver: str) -> list[Overload]:
    return [
        _plain([receiver, "|", "as_tuple:false=False"], "tensor =int64 =2", "s"),
        _plain([receiver, "|", "as_tuple:true"], ["list", "tensor =int64 =1"], "s"),
    ]


def _by_return_indices(overload: Overload) -> list[Overload]:
    """A pooling function as two overloads, with and without the indices."""
    flags = "".join(overload.flags)
    found = []
    for row, returns in (("false=False", "tensor same first"), ("true", _PAIR)):
        rows = [
            f"return_indices:{row}" if name.startswith("return_indices") else name for name in overload.params
        ]
        found.append(_plain(rows, returns, flags))
    return found


# What Python's own syntax calls on a tensor.
DUNDERS = {
    "__bool__": _plain(["self:tensor"], "bool", "d"),
    "__int__": _plain(["self:tensor"], "int", "d"),
    "__float__": _plain(["self:tensor"], "float", "d"),
    "__complex__": _plain(["self:tensor"], "number", "d"),
    "__index__": _plain(["self:tensor"], "int", "d"),
    "__len__": _plain(["self:tensor"], "int"),
    "__contains__": _plain(["self:tensor", "element:any"], "bool", "d"),
    "__hash__": _plain(["self:tensor"], "int"),
    "__repr__": _plain(["self:tensor"], "str", "h"),
    "__str__": _plain(["self:tensor"], "str", "h"),
    "__format__": _plain(["self:tensor", "spec:str"], "str", "h"),
    "__array__": _plain(["self:tensor", "dtype:any=None"], "array", "h"),
    "__iter__": _plain(["self:tensor"], ["list", "tensor same first-1"], aliases=[0]),
    "__setitem__": _plain(["self:tensor", "index:any", "value:any"], "none", mutates=[0]),
    "__getitem__": _plain(["self:tensor", "index:any"], "tensor same -", aliases=[0]),
}


def apply(surface: Surface) -> None:
    """Put the curated rows over what schemas and signatures could not say."""
    for qualified, overloads in FUNCTIONS.items():
        if qualified in surface.functions:
            surface.functions[qualified] = _put(surface, qualified, overloads)
    for name, overloads in {**METHODS, **{key: [value] for key, value in DUNDERS.items()}}.items():
        surface.methods[name] = _put(surface, f"torch.Tensor.{name}", overloads)
    for name in _POOLS:
        qualified = f"torch.nn.functional.{name}"
        (key,) = surface.functions[qualified]
        surface.functions[qualified] = _put(surface, qualified, _by_return_indices(surface.ops[key]))
    for consecutive in (False, True):
        name = "unique_consecutive" if consecutive else "unique"
        qualified, method = f"torch.{name}", f"torch.Tensor.{name}"
        surface.functions[qualified] = _put(
            surface, qualified, _unique("input:tensor", consecutive=consecutive)
        )
        surface.methods[name] = _put(surface, method, _unique("self:tensor", consecutive=consecutive))
    surface.functions["torch.nonzero"] = _put(surface, "torch.nonzero", _nonzero("input:tensor"))
    surface.methods["nonzero"] = _put(surface, "torch.Tensor.nonzero", _nonzero("self:tensor"))
    surface.ops["aten::where"].returns = ["list", "tensor =int64 =1"]
    surface.ops["aten::where"].fixed = True
    # Eager checks the classes' range in any case; traced, only counting the classes reads the data
    # (docs/torch-calls.md).
    surface.ops["aten::one_hot"].data_when = "num_classes == -1"
    surface.ops["aten::is_nonzero"].flags.add("d")
    # As many dimensions as the other tensor has, where the samples cannot tell that from broadcasting.
    surface.ops["aten::expand_as"].returns = "tensor same second"
    surface.ops["aten::expand_as"].fixed = True
    for name in ("embedding", "embedding_bag"):
        (key,) = surface.functions[f"torch.nn.functional.{name}"]
        surface.ops[key].mutates = [1]
        surface.ops[key].flags.add("m")
    for keys in surface.functions.values():
        for key in keys:
            _state_factory_dtype(key, surface.ops[key])
    for qualified, returns in RETURNS.items():
        for key in surface.functions.get(qualified, ()):
            surface.ops[key].returns = returns
            surface.ops[key].fixed = True
    for name in _PREDICATES:
        if f"torch.{name}" in surface.functions:
            for key in surface.functions[f"torch.{name}"]:
                surface.ops[key].returns = "bool"


def _state_factory_dtype(key: str, overload: Overload) -> None:
    """The default dtype of what makes a tensor out of numbers alone."""
    names = [row.partition(":")[0] for row in overload.params]
    if "pin_memory" not in names or any(":tensor" in row for row in overload.params):
        return
    base = key.removeprefix("aten::").partition(".")[0]
    dtype = {"arange": "numbers", "full": "numbers", "range": "=float32"}.get(base, "=float32")
    if base in ("randint", "randperm", "tril_indices", "triu_indices"):
        dtype = "=int64"
    rank = "size" if "size" in names else "=2" if base in ("eye", "tril_indices", "triu_indices") else "=1"
    overload.returns = f"tensor {dtype} {rank}"
    overload.fixed = True


def _put(surface: Surface, qualified: str, overloads: list[Overload]) -> list[str]:
    for stale in [key for key in surface.ops if key == f"py::{qualified}"]:
        del surface.ops[stale]
    keys = [f"py::{qualified}" + (f".{index}" if index else "") for index in range(len(overloads))]
    for overload in overloads:
        overload.fixed = overload.returns not in ("any", "tensor")
    surface.ops.update(zip(keys, overloads, strict=True))
    return keys
