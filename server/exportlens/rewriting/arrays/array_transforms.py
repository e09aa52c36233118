"""Products, linear algebra, Fourier transforms and arrays made of sizes, as torch's."""

from __future__ import annotations

from dataclasses import replace

from exportlens.rewriting.arrays.array_functions import dims_of, left_of
from exportlens.rewriting.arrays.array_operators import computed, multiplied, named
from exportlens.rewriting.arrays.array_pieces import Given, Handler, Piece, cast
from exportlens.rewriting.arrays.array_types import (
    UNLIKE,
    RefusedIndex,
    RefusedUnlike,
    Typed,
    array,
    complex_of,
    family,
    floating,
    of_python,
    promoted,
    real_of,
)
from exportlens.rewriting.code.draft import Refused


def product(call: Given) -> Piece:
    """`np.dot` and `np.matmul`: the same for a second factor of one or two dimensions."""
    one, other = call.array("a"), call.array("b")
    if call.name in ("dot", "inner", "vdot"):
        if 0 in (one.type.rank, other.type.rank):
            left, right, kind = computed(call.scope, one, other, "*")
            return Piece(f"{left.closed} * {right.closed}", kind, False)
        if call.name == "dot" and other.type.rank not in (1, 2):
            return _summed_over(call, one, other)
        if call.name != "dot" and (one.type.rank, other.type.rank) != (1, 1):
            raise Refused(f"whether both factors of `{call.name}` are rows is not known")
    left, right, kind = multiplied(call.scope, one, other)
    return Piece(f"{call.torch}.matmul({left.text}, {right.text})", kind)


def _summed_over(call: Given, one: Piece, other: Piece) -> Piece:
    """`np.dot` where the second factor may have more than two dimensions."""
    left, right, kind = multiplied(call.scope, one, other)
    if not other.text.isidentifier():
        raise Refused(f"how many dimensions `{other.text}` has is not known: use the operator `@`")
    dims = f"([-1], [max({other.text}.dim() - 2, 0)])"
    text = f"{call.torch}.tensordot({left.text}, {right.text}, dims={dims})"
    return Piece(text, array(kind.dtype))


def outer(call: Given) -> Piece:
    one, other = call.array("a"), call.array("b")
    left, right, kind = computed(call.scope, one, other, "*")
    texts = [each.text if each.type.rank == 1 else f"{each.closed}.flatten()" for each in (left, right)]
    return Piece(f"{call.torch}.outer({', '.join(texts)})", array(kind.dtype, 2))


def kronecker(call: Given) -> Piece:
    left, right, kind = computed(call.scope, call.array("a"), call.array("b"), "*")
    return Piece(f"{call.torch}.kron({left.text}, {right.text})", kind)


def crossed(call: Given) -> Piece:
    left, right, kind = computed(call.scope, call.array("a"), call.array("b"), "*")
    return Piece(f"{call.torch}.linalg.cross({left.text}, {right.text})", kind)


def contracted(call: Given) -> Piece:
    one, other = call.array("a"), call.array("b")
    dtype = promoted(one.type.dtype, other.type.dtype)
    left, right = cast(call.scope, one, dtype), cast(call.scope, other, dtype)
    more = [f"dims={call['axes'].text}"] if "axes" in call.given else []
    if more and call["axes"].type.what == "other":
        raise Refused("which axes are summed over is not known")
    return Piece(f"{call.torch}.tensordot({', '.join([left.text, right.text, *more])})", array(dtype))


def summed_products(call: Given) -> Piece:
    """`np.einsum("ij,jk->ik", a, b)`."""
    names = [name for name in call.given if name not in ("spec", "optimize")]
    spec = call["spec"].type.value
    if not isinstance(spec, str) or "." in spec:
        raise Refused("what `np.einsum` sums is not written out")
    pieces = [call.array(name) for name in names]
    dtype = pieces[0].type.dtype
    for each in pieces[1:]:
        dtype = promoted(dtype, each.type.dtype)
    if dtype == "bool" or (family(dtype) == "int" and dtype != "int64"):
        raise RefusedUnlike("torch sums products of bools and ints in 64 bits")
    ins, arrow, out = spec.replace(" ", "").partition("->")
    if len(ins.split(",")) != len(pieces):
        raise Refused("what `np.einsum` sums is not written out")
    rank = len(out) if arrow else len([each for each in set(ins) - {","} if ins.count(each) == 1])
    like = next((name for each in pieces if (name := named(call.scope, each)) is not None), None)
    texts = [cast(call.scope, each, dtype, like).text for each in pieces]
    return Piece(f"{call.torch}.einsum({', '.join([call['spec'].text, *texts])})", array(dtype, rank))


def chained(call: Given) -> Piece:
    pieces = call.items("arrays")
    if not pieces or not all(each.type.is_array for each in pieces):
        raise Refused("not all that is multiplied is known to be arrays that were tensors")
    dtype = pieces[0].type.dtype
    for each in pieces[1:]:
        dtype = promoted(dtype, each.type.dtype)
    texts = [cast(call.scope, each, dtype).text for each in pieces]
    ends = [pieces[0].type.rank, pieces[-1].type.rank]
    rank = None if None in ends else 2 - ends.count(1)
    return Piece(f"{call.torch}.linalg.multi_dot([{', '.join(texts)}])", array(dtype, rank))


def sloped(call: Given) -> Piece:
    """`np.gradient` along one axis."""
    one = call.array("a")
    one = cast(call.scope, one, floating(one.type.dtype))
    more = []
    if "spacing" in call.given:
        if call["spacing"].type.what != "number":
            raise Refused("how far apart elements are is not known to be a number")
        more.append(f"spacing={call['spacing'].text}")
    if call.has("axis"):
        more.append(f"dim={call.integer('axis')}")
    elif one.type.rank != 1:
        raise Refused("along which axis the slope is asked for is not written out")
    return Piece(
        f"{call.torch}.gradient({', '.join([one.text, *more])})[0]", array(one.type.dtype, one.type.rank)
    )


def norm(call: Given) -> Piece:
    one = call.array("a")
    one = cast(call.scope, one, floating(one.type.dtype))
    more = [call["ord"].text] if call.has("ord") else []
    if more and call["ord"].type.what not in ("number", "text"):
        raise Refused("which norm is asked for is not known")
    rank = left_of(call, one.type.rank)
    text = f"{call.torch}.linalg.norm({', '.join([one.text, *more, *dims_of(call)])})"
    return Piece(text, array(real_of(one.type.dtype), rank))


def of_matrix(call: Given) -> Piece:
    """`np.linalg.inv`, `det`, `eigvalsh`, `eigh`, `slogdet`, `cholesky` and `svd` without vectors."""
    one = call.array("a")
    one = cast(call.scope, one, floating(one.type.dtype))
    short = call.name.removeprefix("linalg.")
    dtype, rank = one.type.dtype, one.type.rank
    lower = {"inv": 0, "cholesky": 0, "det": 2, "slogdet": 2, "eigvalsh": 1, "eigh": 1, "svd": 1}[short]
    left = None if rank is None else rank - lower
    text = f"{call.torch}.linalg.{short}({one.text})"
    if short == "svd":
        values = array(real_of(dtype), left)
        if "compute_uv" in call.given and call["compute_uv"].type.value is False:
            return Piece(f"{call.torch}.linalg.svdvals({one.text})", values)
        # The signs of singular vectors are not determined (NumPy's and torch's differ for one matrix in three).
        full = call.flag("full") or "True"
        if full not in ("True", "False") or "compute_uv" in call.given:
            raise Refused("which singular vectors are asked for is not written out")
        text = f"{call.torch}.linalg.svd({one.text}, full_matrices={full})"
        return Piece(text, Typed("tuple", items=(UNLIKE, values, UNLIKE)))
    if short == "slogdet":
        kind = Typed("tuple", items=(array(dtype, left), array(real_of(dtype), left)))
        return Piece(text, kind)
    if short == "eigh":
        # The signs of eigenvectors are not determined: what is computed of them may differ.
        return Piece(text, Typed("tuple", items=(array(real_of(dtype), left), UNLIKE)))
    return Piece(text, array(real_of(dtype) if short == "eigvalsh" else dtype, left))


def powered(call: Given) -> Piece:
    one = call.array("a")
    if family(one.type.dtype) not in ("float", "complex"):
        raise Refused("torch multiplies matrices of floats alone as often as that")
    return Piece(f"{call.torch}.linalg.matrix_power({one.text}, {call.integer('n')})", one.type)


def solved(call: Given) -> Piece:
    one, other = call.array("a"), call.array("b")
    dtype = floating(promoted(one.type.dtype, other.type.dtype))
    if other.type.rank != 1 and (one.type.rank is None or other.type.rank != one.type.rank):
        raise Refused("whether one or several right sides are solved for is not known")
    left, right = cast(call.scope, one, dtype), cast(call.scope, other, dtype)
    return Piece(f"{call.torch}.linalg.solve({left.text}, {right.text})", array(dtype, other.type.rank))


def transform(call: Given) -> Piece:
    one = call.array("a")
    short = call.name.removeprefix("fft.")
    if family(one.type.dtype) in ("int", "bool"):
        one = cast(call.scope, one, "float64")
    if one.type.dtype == "float16":
        raise Refused("NumPy transforms halves in double precision")
    if family(one.type.dtype) == "complex" and short.startswith("rfft"):
        raise Refused("a real transform of complex numbers")
    dtype = real_of(one.type.dtype) if short.startswith("irfft") else complex_of(one.type.dtype)
    more = []
    for name, key in (("n", "n"), ("s", "s"), ("axis", "dim"), ("axes", "dim")):
        if call.has(name):
            more.append(f"{key}={call.integer(name) if name in ('n', 'axis') else call[name].text}")
    if call.has("norm"):
        more.append(f"norm={call['norm'].text}")
    return Piece(f"{call.torch}.fft.{short}({', '.join([one.text, *more])})", array(dtype, one.type.rank))


def shifted(call: Given) -> Piece:
    one = call.array("a")
    more = []
    if call.has("axes"):
        call.axes("axes")
        more = [f"dim={call['axes'].text}"]
    return Piece(f"{call.torch}.{call.name}({', '.join([one.text, *more])})", one.type)


def integrated(call: Given) -> Piece:
    one = call.array("y")
    if family(one.type.dtype) == "complex":
        raise Refused("torch's integral of complex numbers is not compared")
    one = cast(call.scope, one, floating(one.type.dtype))
    more = []
    dtype = one.type.dtype
    if call.has("x"):
        places = call.array("x")
        dtype = promoted(dtype, places.type.dtype)
        more.append(cast(call.scope, places, dtype).text)
    elif "dx" in call.given:
        if call["dx"].type.what != "number":
            raise Refused("how far apart elements are is not known")
        more.append(f"dx={call['dx'].text}")
    if "axis" in call.given:
        more.append(f"dim={call.integer('axis')}")
    text = f"{call.torch}.trapezoid({', '.join([cast(call.scope, one, dtype).text, *more])})"
    return Piece(text, array(dtype, None if one.type.rank is None else one.type.rank - 1))


def found_in(call: Given) -> Piece:
    """`np.digitize` and `np.searchsorted`, where what is searched certainly goes up."""
    bins, one = call.array("bins"), call.array("a")
    if bins.type.rank != 1:
        raise Refused(f"`{bins.text}` is not known to be one row")
    if call.name == "digitize" and not bins.type.ascends:
        raise RefusedUnlike(f"whether `{bins.text}` goes up or down is not known")
    dtype = promoted(bins.type.dtype, one.type.dtype)
    right = call.flag("right") or "False"
    if call.name == "searchsorted":
        right = "True" if call.has("side") and call["side"].type.value == "right" else "False"
    elif right not in ("True", "False"):
        raise Refused("on which side of a border what is equal falls is not written out")
    else:
        right = "False" if right == "True" else "True"
    text = f"{call.torch}.bucketize({cast(call.scope, one, dtype).text}, {cast(call.scope, bins, dtype).text}"
    return Piece(f"{text}{', right=True' if right == 'True' else ''})", array("int64", one.type.rank))


def among(call: Given) -> Piece:
    """`np.isin` of an array, or a list that is written there."""
    one, other = call.array("a"), call.array("b")
    dtype = promoted(one.type.dtype, other.type.dtype)
    if dtype == "bool" or family(dtype) == "complex":
        raise Refused("torch looks for numbers alone")
    left, right = cast(call.scope, one, dtype), cast(call.scope, other, dtype)
    more = []
    if (turned := call.flag("invert")) is not None:
        if call["invert"].type.what != "number":
            raise Refused(f"whether `{turned}` is true is not known")
        more.append(f"invert={turned}")
    return Piece(
        f"{call.torch}.isin({', '.join([left.text, right.text, *more])})", array("bool", one.type.rank)
    )


def counted(call: Given) -> Piece:
    one = call.array("a")
    if family(one.type.dtype) != "int":
        raise RefusedIndex(f"`{one.text}`, whose numbers are counted, is not known to hold ints")
    more = []
    dtype = "int64"
    if call.has("weights"):
        more.append(cast(call.scope, call.array("weights"), "float64").text)
        dtype = "float64"
    if "minlength" in call.given:
        more.append(f"minlength={call.integer('minlength')}")
    return Piece(f"{call.torch}.bincount({', '.join([one.text, *more])})", array(dtype, 1))


def alike(call: Given) -> Piece:
    """`np.zeros_like(a)` and its kin."""
    one = call.array("a")
    more, dtype = [], one.type.dtype
    if call.name == "full_like":
        if not call["value"].type.is_number:
            raise Refused("what an array is filled with is not known to be a number")
        if family(dtype) in ("int", "bool") and call["value"].type.dtype not in ("int", "bool"):
            raise RefusedUnlike("NumPy cuts off what is behind the point")
        more.append(call["value"].text)
    if "dtype" in call.given:
        dtype, written = call.dtype()
        more.append(f"dtype={written}")
    elif one.type.made_of is not None:
        name, dtype = one.type.made_of
        more.append(f"dtype={name}.dtype")
        call.scope.kept = True
    kind = replace(array(dtype, one.type.rank), made_of=None if "dtype" in call.given else one.type.made_of)
    return Piece(f"{call.torch}.{call.name}({', '.join([one.text, *more])})", kind)


_WINDOWS = {
    "hanning": "hann_window",
    "hamming": "hamming_window",
    "blackman": "blackman_window",
    "bartlett": "bartlett_window",
}


def window(call: Given) -> Piece:
    text = (
        f"{call.torch}.{_WINDOWS[call.name]}({call.integer('n')}, periodic=False, dtype={call.torch}.float64)"
    )
    return Piece(text, array("float64", 1))


def frequencies(call: Given) -> Piece:
    more = []
    if "d" in call.given:
        if call["d"].type.what != "number":
            raise Refused("how far apart samples are is not known to be a number")
        more = [f"d={call['d'].text}"]
    text = f"{call.torch}.{call.name}({', '.join([call.integer('n'), *more])}, dtype={call.torch}.float64)"
    return Piece(text, array("float64", 1))


def filled(call: Given) -> Piece:
    """`np.zeros`, `np.ones` and `np.full`, of doubles where no dtype is asked for."""
    kind = call["shape"].type
    items = kind.items if kind.what in ("tuple", "list") else (kind,)
    if kind.what != "shape" and any(each.what != "number" for each in items):
        raise Refused(f"which shape `{call['shape'].text}` is is not known")
    rank = kind.rank if kind.what == "shape" else len(items)
    dtype = "float64"
    if call.name == "full":
        value = call["value"]
        if not value.type.is_number:
            raise Refused("what an array is filled with is not known to be a number")
        if "dtype" not in call.given:
            dtype = value.type.dtype if value.type.what == "constant" else of_python(value.type.dtype)
    name, shape = call.name, call["shape"].text
    text = f"dtype={call.torch}.{dtype}"
    if "dtype" in call.given:
        dtype, written = call.dtype()
        text = f"dtype={written}"
    if name == "full":
        shape = f"({shape},)" if kind.what == "number" else shape
    texts = [shape, *([call["value"].text] if name == "full" else []), text]
    return Piece(f"{call.torch}.{name}({', '.join(texts)})", array(dtype, rank))


def identity(call: Given) -> Piece:
    sizes = [call.integer(name) for name in ("n", "m") if name in call.given]
    text = f"dtype={call.torch}.float64"
    dtype = "float64"
    if "dtype" in call.given:
        dtype, written = call.dtype()
        text = f"dtype={written}"
    return Piece(f"{call.torch}.eye({', '.join([*sizes, text])})", array(dtype, 2))


def places(call: Given) -> Piece:
    """`np.indices((h, w))`: the numbers of rows and of columns."""
    kind = call["shape"].type
    if kind.what == "tuple" and all(each.what == "number" for each in kind.items):
        rank: int | None = len(kind.items)
    elif kind.what == "shape":
        rank = kind.rank
    else:
        raise Refused(f"which shape `{call['shape'].text}` is is not known")
    rows = f"*map({call.torch}.arange, {call['shape'].text})"
    text = f'{call.torch}.stack({call.torch}.meshgrid({rows}, indexing="ij"))'
    return Piece(text, array("int64", None if rank is None else rank + 1))


def counting(call: Given) -> Piece:
    """`np.arange`: of whole numbers torch counts in 64 bits as well."""
    given = [call[name] for name in ("start", "stop", "step") if name in call.given]
    kinds = {each.type.dtype for each in given}
    if not all(each.type.what == "number" for each in given) or not kinds <= {"int", "float"}:
        raise Refused("of which type the numbers are that are counted is not known")
    step = given[2].type.value if len(given) > 2 else 1
    if not isinstance(step, (int, float)) or step <= 0:
        raise Refused("whether numbers are counted up or down is not known")
    texts = [each.text for each in given]
    if len(given) > 1 and not all(each.type.value is not None for each in given):
        first, end = given[0].type.value, given[1].type.least_value
        if not isinstance(first, int) or kinds != {"int"}:
            raise Refused("NumPy counts nothing where the end comes first, and torch raises")
        if end is None or first > end:
            # NumPy counts nothing where the end comes first, and torch raises.
            texts[1] = f"max({texts[0]}, {texts[1]})"
    dtype = "int64" if kinds == {"int"} else "float64"
    more = [f"dtype={call.torch}.float64"] if dtype == "float64" else []
    if "dtype" in call.given:
        dtype, written = call.dtype()
        more = [f"dtype={written}"]
    text = f"{call.torch}.arange({', '.join([*texts, *more])})"
    return Piece(text, replace(array(dtype, 1), ascends=True))


def spaced(call: Given) -> Piece:
    """`np.linspace` with a number of steps, which torch takes for its own."""
    start, stop = call["start"], call["stop"]
    if not (start.type.what == stop.type.what == "number"):
        raise Refused("from where to where numbers are spaced is not known")
    steps = call.integer("n") if "n" in call.given else "50"
    ends = (start.type.value, stop.type.value)
    known = all(isinstance(each, (int, float)) for each in ends)
    ascends = known and ends[0] < ends[1]  # type: ignore[operator]
    text = f"{call.torch}.linspace({start.text}, {stop.text}, {steps}, dtype={call.torch}.float64)"
    made = Piece(text, replace(array("float64", 1), ascends=ascends))
    if "dtype" in call.given:
        dtype, written = call.dtype()
        if family(dtype) != "float":
            raise Refused(f"numbers are spaced as `{written}`")
        return cast(call.scope, made, dtype)
    return made


# What NumPy makes of sizes and numbers alone.
MAKING: dict[str, tuple[Handler, str, int]] = {
    **dict.fromkeys(_WINDOWS, (window, "n", 1)),
    **dict.fromkeys(("fft.rfftfreq", "fft.fftfreq"), (frequencies, "n d", 1)),
    **dict.fromkeys(("zeros", "ones", "empty"), (filled, "shape dtype", 1)),
    "full": (filled, "shape value/fill_value dtype", 2),
    "eye": (identity, "n/N m/M unknown_k dtype", 1),
    "identity": (identity, "n dtype", 1),
    "indices": (places, "shape/dimensions", 1),
    "arange": (counting, "start stop step dtype", 1),
    "linspace": (spaced, "start stop n/num unknown_endpoint unknown_retstep dtype", 2),
}


def functions() -> dict[str, tuple[Handler, str, int]]:
    table: dict[str, tuple[Handler, str, int]] = {
        **dict.fromkeys(("dot", "matmul", "inner", "vdot"), (product, "a b", 2)),
        "outer": (outer, "a b", 2),
        "kron": (kronecker, "a b", 2),
        "cross": (crossed, "a b", 2),
        "tensordot": (contracted, "a b axes", 2),
        "linalg.multi_dot": (chained, "arrays", 1),
        "gradient": (sloped, "a spacing axis", 1),
        "einsum": (summed_products, "spec a b c d optimize", 2),
        "linalg.norm": (norm, "a ord axis keepdims", 1),
        "linalg.svd": (of_matrix, "a full/full_matrices compute_uv", 1),
        "linalg.matrix_power": (powered, "a n", 2),
        "linalg.solve": (solved, "a b", 2),
        "digitize": (found_in, "a bins right", 2),
        "isin": (among, "a/element b/test_elements unknown_unique invert", 2),
        "bincount": (counted, "a weights minlength", 1),
        "searchsorted": (found_in, "bins a side", 2),
        **dict.fromkeys(("trapezoid", "trapz"), (integrated, "y x dx axis", 1)),
        **{f"fft.{name}": (shifted, "a axes", 1) for name in ("fftshift", "ifftshift")},
    }
    for name in ("inv", "det", "slogdet", "eigvalsh", "eigh", "cholesky"):
        table[f"linalg.{name}"] = (of_matrix, "a", 1)
    for name in ("fft", "ifft", "rfft", "irfft"):
        table[f"fft.{name}"] = (transform, "a n axis norm", 1)
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn"):
        table[f"fft.{name}"] = (transform, "a s axes norm", 1)
    for name in ("zeros_like", "ones_like", "empty_like"):
        table[name] = (alike, "a dtype", 1)
    table["full_like"] = (alike, "a value/fill_value dtype", 2)
    return table
