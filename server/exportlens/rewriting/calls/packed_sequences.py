"""Recurrent layers on packed sequences become loops over padded ones that keep each sequence's state at its end.

Packing, the layer and unpacking are replaced call by call, by functions that are written into the file: they do for a
pair of padded sequences and lengths what torch does for a PackedSequence, in each layer and direction.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from exportlens.finding import Applicability, Edit, Fix, Range, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.branches.joined_options import joined
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, behind_imports
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import bound
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, Source, replaced
from exportlens.rewriting.memory.moving import writes

_PACK = "torch.nn.utils.rnn.pack_padded_sequence"
_UNPACK = "torch.nn.utils.rnn.pad_packed_sequence"
_FUNCTIONS = '''

def _pack(x, lengths, batch_first=False, enforce_sorted=True):
    """Padded sequences, batch first, and how long each is."""
    return x if batch_first else x.transpose(0, 1), torch.as_tensor(lengths).to(torch.int64)


def _run_packed(rnn, packed, state=None):
    """What the recurrent layer `rnn` gives for packed sequences: states stay as they are behind a sequence's end."""
    x, lengths = packed
    inside = torch.arange(x.shape[1], device=x.device) < lengths.to(x.device).unsqueeze(1)
    cells = {"LSTM": torch.lstm_cell, "GRU": torch.gru_cell, "RNN_TANH": torch.rnn_tanh_cell}
    cell = cells.get(rnn.mode, torch.rnn_relu_cell)
    directions = 2 if rnn.bidirectional else 1
    zeros = x.new_zeros(rnn.num_layers * directions, x.shape[0], rnn.hidden_size)
    if rnn.mode != "LSTM":
        first = (zeros if state is None else state,)
    else:
        first = (zeros, zeros) if state is None else state
    ends = []
    for layer in range(rnn.num_layers):
        sides = []
        for direction in range(directions):
            number = layer * directions + direction
            now = tuple(each[number] for each in first)
            steps = [now[0]] * x.shape[1]
            for t in reversed(range(x.shape[1])) if direction else range(x.shape[1]):
                mask = inside[:, t].unsqueeze(1)
                after = cell(x[:, t], now if rnn.mode == "LSTM" else now[0], *rnn.all_weights[number])
                after = after if rnn.mode == "LSTM" else (after,)
                now = tuple(torch.where(mask, new, old) for new, old in zip(after, now))
                steps[t] = now[0] * mask
            sides.append(torch.stack(steps, 1))
            ends.append(now)
        x = torch.cat(sides, -1).view(x.shape[0], x.shape[1], directions * rnn.hidden_size)
        if layer < rnn.num_layers - 1:
            x = torch.nn.functional.dropout(x, rnn.dropout, rnn.training)
    last = tuple(torch.stack(each) for each in zip(*ends))
    return (x, lengths), last if rnn.mode == "LSTM" else last[0]


def _unpack(packed, batch_first=False, total_length=None):
    """The padded sequences, as long as the longest or `total_length`, and how long each is."""
    x, lengths = packed
    if total_length is None:
        x = x[:, : lengths.max().item()]
    else:
        x = torch.nn.functional.pad(x, (0, 0, 0, total_length - x.shape[1]))
    return x if batch_first else x.transpose(0, 1), lengths.cpu()
'''
# What would hide them, or be hidden.
_ITS_OWN = re.compile(r"(?<![\w.])(?:def (?:_pack|_run_packed|_unpack)\(|(?:_pack|_run_packed|_unpack)\b *=)")


def padded_for_packed(place: Call, context: RewriteContext) -> Fix | Refusal:
    """The calls of one function that pack sequences, run layers on them and unpack them, by those of `_FUNCTIONS`."""
    try:
        draft = Draft.of(place, context)
        function = draft.source.enclosing_function(draft.source.find(place.node))
        if function is None:
            raise Refused("the sequences are not packed in a function")
        edits = [*_functions(draft), *_padded(draft, function).edits]
        return Fix("Run the layer on padded sequences", tuple(edits), Applicability.UNSAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _padded(draft: Draft, function: Function) -> Fix:
    """The calls of `function` replaced, as they are written or where branches on whether there are lengths are one."""
    try:
        return draft.replace("", _Packing(draft, function).swaps())
    except Refused:
        changed = joined(draft.source, function)
        if changed is None:
            raise
        source, function = changed
        swaps = _Packing(replace(draft, source=source), function).swaps()
        return draft.fix("", replaced(source.text, swaps))


def _functions(draft: Draft) -> list[Edit]:
    """The functions behind the imports, where the file does not have them."""
    document = draft.context.document
    texts = [each.chunk.text for each in document.placed]
    if any("def _run_packed(rnn, packed, state=None):" in text for text in texts):
        return []
    if any(_ITS_OWN.search(text) for text in texts):
        raise Refused("the file has a `_pack` or `_unpack` of its own")
    at = behind_imports(document)
    if at is None:
        raise Refused("the file imports nothing")
    text = _FUNCTIONS if draft.torch == "torch" else _FUNCTIONS.replace("torch.", f"{draft.torch}.")
    following = document.text.splitlines()[at.line : at.line + 2]
    empty = next((index for index, line in enumerate(following) if line.strip()), len(following))
    return [
        Edit(Range(at, at), text.replace("\n", draft.source.newline) + draft.source.newline * (2 - empty))
    ]


def _tensor_of(lengths: ast.expr) -> ast.expr:
    """The tensor in `list(t)`, `list(map(int, t))`, `t.tolist()`, `t.numpy()`. Raises Refused where a list is of something else."""
    given = lengths
    while isinstance(lengths, ast.Call):
        function = lengths.func
        if isinstance(function, ast.Name) and function.id == "list" and len(lengths.args) == 1:
            lengths = lengths.args[0]
        elif (
            isinstance(function, ast.Name)
            and function.id == "map"
            and [ast.unparse(each) for each in lengths.args[:-1]] == ["int"]
        ):
            lengths = lengths.args[1]
        elif (
            isinstance(function, ast.Attribute) and function.attr in ("tolist", "numpy") and not lengths.args
        ):
            lengths = function.value
        else:
            break
    made = isinstance(lengths, ast.Call) and isinstance(lengths.func, ast.Name)
    if lengths is not given and (made or isinstance(lengths, (ast.List, ast.ListComp, ast.GeneratorExp))):
        raise Refused("the lengths are a list of something else than a tensor: give a tensor of lengths")
    return lengths


def _is_moved(node: ast.expr) -> bool:
    """Whether `node` is a Module on another device or of another dtype: these methods give the Module itself."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("cuda", "cpu", "to", "float", "double")
    )


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


class _Packing:
    """The packed sequences of one function, followed from where they are made to where they are unpacked."""

    def __init__(self, draft: Draft, function: Function) -> None:
        self.draft, self.source, self.function = draft, draft.source, function
        # Where the class, or one that it extends, makes its layers.
        self.sources = [draft.source, *(Source(each.text) for each in draft.extended())]
        self.made: dict[ast.Call, list[Replacement]] = {}
        # Lists of lengths that stay tensors, by the statement that makes them.
        self.kept: dict[ast.Assign, Replacement] = {}
        # Names bound to packed sequences, and those that must be as they are taken behind the arms of a branch.
        self.packed: set[tuple[str, ast.stmt]] = set()
        self.wanted: set[tuple[str, ast.stmt]] = set()

    def swaps(self) -> list[Replacement]:
        packs = [each for each in self._calls() if self.draft.qualified(each.func) == _PACK]
        if not packs:
            raise Refused(
                "the sequences are packed elsewhere: keep them padded, and mask what the layer gives"
            )
        for each in packs:
            self.made[each] = [self.source.swap(each.func, "_pack"), *self._lengths(each)]
            self._follow(each)
        if {each for each in self._calls() if self.draft.qualified(each.func) == _UNPACK} - set(self.made):
            raise Refused("what is unpacked is not known to be packed here")
        if not self.wanted <= self.packed:
            raise Refused("the sequences are packed in a branch or a loop")
        return [swap for swaps in self.made.values() for swap in swaps] + list(self.kept.values())

    def _calls(self) -> list[ast.Call]:
        return [each for each in ast.walk(self.function) if isinstance(each, ast.Call)]

    def _lengths(self, call: ast.Call) -> list[Replacement]:
        """The lengths as a tensor where they are made a list of."""
        named = {key.arg: key.value for key in call.keywords}
        if set(named) - {"input", "lengths", "batch_first", "enforce_sorted"} or "input" in named:
            raise Refused("the arguments of `pack_padded_sequence` are not plain")
        lengths = named.get("lengths", call.args[1] if len(call.args) > 1 else None)
        if lengths is None:
            raise Refused("the lengths are not written in the call")
        inner = _tensor_of(lengths)
        if isinstance(inner, ast.Name) and self._is_list(inner.id) and not self._keeps_tensor(inner):
            raise Refused(f"`{inner.id}` is a list made of a tensor: give the tensor of lengths itself")
        return [] if inner is lengths else [self.source.swap(lengths, self.source.of(inner))]

    def _keeps_tensor(self, name: ast.Name) -> bool:
        """Whether the list of lengths `name` can stay the tensor that it is made of: it is only packed with."""
        function = self.function
        stores = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name.id and not isinstance(each.ctx, ast.Load)
        ]
        made = self.source.parents[stores[0]] if len(stores) == 1 else None
        block, _ = self.source.block_of(self.source.enclosing_statement(name))
        if not (isinstance(made, ast.Assign) and len(made.targets) == 1 and made in (*function.body, *block)):
            return False
        tensor = _tensor_of(made.value)
        if tensor is made.value or isinstance(tensor, ast.Constant):
            return False
        end = self.source.end(made)
        for each in ast.walk(function):
            if isinstance(each, ast.Name) and each.id == name.id and isinstance(each.ctx, ast.Load):
                if self.source.start(each) < end:
                    continue
                # As a list it is taken by what packs, and by nothing else that a tensor would answer in another way.
                call = self.source.parents[each]
                if not (isinstance(call, ast.Call) and self.draft.qualified(call.func) == _PACK):
                    return False
        text = self.source.of(tensor)
        if writes([function]):
            # The list stays what it was when the tensor is written to.
            text = f"{primary(text)}.clone()"
        self.kept[made] = self.source.swap(made.value, text)
        return True

    def _is_list(self, name: str) -> bool:
        """Whether `name` is certainly or possibly a list of numbers from data."""
        values = [
            each.value
            for each in ast.walk(self.function)
            if isinstance(each, ast.Assign)
            and any(isinstance(one, ast.Name) and one.id == name for one in each.targets)
        ]
        return any(
            "tolist(" in ast.unparse(each) or isinstance(each, (ast.List, ast.ListComp)) for each in values
        )

    def _follow(self, node: ast.expr) -> None:
        """Go on where the packed sequences that `node` gives are taken. Raises Refused where that is not known."""
        parent = self.source.parents[node]
        if isinstance(parent, ast.Attribute) and parent.attr in ("to", "cuda", "cpu") and node in self.made:
            self._moved(node, parent)
        elif isinstance(parent, ast.Call) and parent.args and parent.args[0] is node:
            self._taken_by(parent)
        elif (
            isinstance(parent, ast.Assign)
            and len(parent.targets) == 1
            and isinstance(parent.targets[0], ast.Name)
        ):
            self._named(parent.targets[0].id, parent)
        else:
            raise Refused("the packed sequences are used in a way that padded ones have no counterpart for")

    def _moved(self, pack: ast.expr, attribute: ast.Attribute) -> None:
        """`pack(x, lengths).to(device)`: the padded sequences are moved before."""
        call, source = self.source.parents[attribute], self.source
        if not (isinstance(call, ast.Call) and call.func is attribute and isinstance(pack, ast.Call)):
            raise Refused("the packed sequences are used in a way that padded ones have no counterpart for")
        tail = source.text[source.end(pack) : source.end(call)].strip()
        if not tail.startswith("."):
            raise Refused("the packed sequences are used in a way that padded ones have no counterpart for")
        given = pack.args[0]
        self.made[pack] += [
            source.swap(given, primary(source.of(given)) + tail),
            Replacement(source.end(pack), source.end(call), ""),
        ]
        self._follow(call)

    def _named(self, name: str, statement: ast.Assign) -> None:
        end = self.source.end(statement)
        later = sorted(
            (
                each
                for each in ast.walk(self.function)
                if isinstance(each, ast.Name)
                and each.id == name
                and self.source.start(each) >= end
                and not self._in_the_other_arm(each, statement)
            ),
            key=lambda each: (self.source.enclosing_statement(each).lineno, isinstance(each.ctx, ast.Store)),
        )
        loops = [each for each in self.source.ancestors(statement) if isinstance(each, (ast.For, ast.While))]
        if loops and name not in Liveness(self.function).live_after(loops[-1]):
            inside = {id(each) for each in ast.walk(loops[-1])}
            later = [each for each in later if id(each) in inside]
        branched = any(
            isinstance(each, (ast.If, ast.For, ast.While, ast.Try))
            for each in self.source.ancestors(statement)
        )
        inner, _ = self.source.block_of(statement)
        block = list(inner)
        outermost = self._branch(statement)
        arms: list[ast.Assign] = []
        if outermost is not None and not loops:
            arms = self._arms(name, statement) or self._stores(name, outermost)
        if arms and outermost is not None:
            block += self.source.block_of(outermost)[0]
        # Bound anew beside `statement`, it is something else behind that.
        anew = next(
            (
                index
                for index, each in enumerate(later)
                if isinstance(each.ctx, ast.Store) and self.source.enclosing_statement(each) in block
            ),
            len(later),
        )
        later = later[: anew + 1]
        elsewhere = any(self.source.enclosing_statement(each) not in inner for each in later)
        tried = any(isinstance(each, ast.Try) for each in self.source.ancestors(statement))
        self.packed.add((name, statement))
        if elsewhere:
            self.wanted |= {(name, each) for each in arms}
        if (
            tried
            or (elsewhere and branched and not arms)
            or (loops and self._is_read_by_next_round(name, loops[-1], end))
        ):
            raise Refused("the sequences are packed in a branch or a loop")
        for each in later:
            if not isinstance(each.ctx, ast.Load):
                store = self.source.enclosing_statement(each)
                if store not in block:
                    if loops or not isinstance(store, ast.Assign):
                        raise Refused(f"`{each.id}` may be bound to something else, or not")
                    # To packed sequences again.
                    self.wanted.add((name, store))
                    continue
                # Bound anew, at the latest by the statement that takes what it was.
                return
            self._follow(each)

    def _branch(self, statement: ast.stmt) -> ast.If | None:
        """The outermost `if` of the chain, with no other statement around, that `statement` stands in an arm of."""
        found = None
        for inside, each in zip(
            [statement, *self.source.ancestors(statement)], self.source.ancestors(statement), strict=False
        ):
            if not isinstance(each, ast.If) or not (found is None or each.orelse == [inside]):
                break
            found = each
        return found

    def _arms(self, name: str, statement: ast.stmt) -> list[ast.Assign]:
        """What binds `name` in each arm around `statement`; nothing where an arm does not, or where that is not plain."""
        found: list[ast.Assign] = []
        waiting: list[list[ast.stmt]] = []
        branch = self._branch(statement)
        while branch is not None:
            waiting.append(branch.body)
            rest = branch.orelse
            branch = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
            if branch is None:
                waiting.append(rest)
        for arm in waiting:
            stores = [each for each in arm if name in bound(each)]
            if not stores or not isinstance(stores[-1], ast.Assign):
                return []
            found.append(stores[-1])
        return found

    def _stores(self, name: str, branch: ast.If) -> list[ast.Assign]:
        """All that binds `name` up to the end of `branch`; nothing where something else than an assignment may."""
        found: list[ast.Assign] = []
        arguments = [each.arg for each in ast.walk(self.function.args) if isinstance(each, ast.arg)]
        for each in ast.walk(self.function):
            stores = isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
            if stores and self.source.start(each) < self.source.end(branch):
                statement = self.source.enclosing_statement(each)
                if not isinstance(statement, ast.Assign):
                    return []
                found.append(statement)
        return [] if name in arguments else found

    def _is_read_by_next_round(self, name: str, loop: ast.For | ast.While, end: int) -> bool:
        """Whether what `name` is bound to, up to `end`, may still be read when `loop` begins anew."""
        return any(
            isinstance(each, ast.Name)
            and each.id == name
            and isinstance(each.ctx, ast.Load)
            and self.source.start(each) < end
            for each in ast.walk(loop)
        )

    def _refuse_length_for_next_round(self, call: ast.Call) -> None:
        """A layer on padded sequences runs as many steps as these are long, which tracing must know."""
        statement = self.source.enclosing_statement(call)
        for loop in self.source.ancestors(call):
            if isinstance(loop, (ast.For, ast.While)) and any(
                self._is_read_by_next_round(name, loop, self.source.start(statement))
                for name in bound(statement)
            ):
                raise Refused(
                    "the next round packs sequences that are as long as data says: give `total_length` to "
                    "`pad_packed_sequence`"
                )

    def _in_the_other_arm(self, node: ast.AST, statement: ast.stmt) -> bool:
        """Whether `node` stands where a branch goes that does not come to `statement`."""
        source = self.source
        if any(isinstance(each, (ast.For, ast.While)) for each in source.ancestors(statement)):
            return False
        own = {id(statement), *map(id, source.ancestors(statement))}
        return any(
            id(each) in own and any(id(one) in own for one in each.body) and inside in each.orelse
            for inside, each in zip([node, *source.ancestors(node)], source.ancestors(node), strict=False)
            if isinstance(each, ast.If)
        )

    def _taken_by(self, call: ast.Call) -> None:
        if call in self.made:
            return
        source = self.source
        if self.draft.qualified(call.func) == _UNPACK:
            named = {key.arg: key for key in call.keywords}
            padding = named.pop("padding_value", None)
            if padding is not None and not _is_zero(padding.value):
                raise Refused("sequences are padded with something else than zero")
            if set(named) - {"batch_first", "total_length"} or len(call.args) > 2:
                raise Refused("the arguments of `pad_packed_sequence` are not plain")
            if "total_length" not in named:
                self._refuse_length_for_next_round(call)
            self.made[call] = [source.swap(call.func, "_unpack")]
            if padding is not None:
                # What stands before and behind it is joined by the comma before it.
                given = [*call.args, *(key.value for key in call.keywords if key is not padding)]
                before = max(source.end(one) for one in given if source.end(one) < source.start(padding))
                self.made[call].append(Replacement(before, source.end(padding.value), ""))
            return
        state = [key for key in call.keywords if key.arg == "hx"]
        if not self._is_layer(call.func) or len(call.keywords) > len(state) or len(call.args) > 2:
            raise Refused(f"`{source.of(call.func)}` is not known to be a recurrent layer of torch")
        start = source.start(call.args[0])
        self.made[call] = [
            source.swap(call.func, "_run_packed"),
            Replacement(start, start, f"{source.of(call.func)}, "),
            *(Replacement(source.start(key), source.start(key.value), "state=") for key in state),
        ]
        parent = source.parents[call]
        targets = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
        if (
            isinstance(targets, ast.Tuple)
            and len(targets.elts) == 2
            and isinstance(targets.elts[0], ast.Name)
        ):
            assert isinstance(parent, ast.Assign)
            self._named(targets.elts[0].id, parent)
        elif isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant):
            if parent.slice.value == 0:
                self._follow(parent)
        else:
            for each in self._taken_apart(parent):
                self._follow(each)

    def _taken_apart(self, statement: ast.AST) -> list[ast.Subscript]:
        """Each `out[0]` behind `out = layer(packed)`, of a name that is read in no other way. Raises Refused."""
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        target = targets[0] if len(targets) == 1 else None
        if not isinstance(target, ast.Name):
            raise Refused("what the layer gives is not taken apart at once")
        found: list[ast.Subscript] = []
        for each in ast.walk(self.function):
            if isinstance(each, ast.Name) and each.id == target.id and each is not target:
                item = self.source.parents[each]
                if not (
                    isinstance(item, ast.Subscript)
                    and isinstance(item.slice, ast.Constant)
                    and item.slice.value in (0, 1)
                ):
                    raise Refused("what the layer gives is not taken apart at once")
                if item.slice.value == 0:
                    found.append(item)
        return found

    def _is_layer(self, node: ast.expr) -> bool:
        """Whether the class makes `self.name`, or all that the list `self.name` holds, as torch's recurrent layers without a
        projection."""
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            return self._is_list_of_layers(node.value)
        if isinstance(node, ast.Name):
            stores = [
                self.source.parents[each]
                for each in ast.walk(self.function)
                if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
            ]
            return bool(stores) and all(self._runs_over_layers(each) for each in stores)
        made = self._made_as(node)
        return bool(made) and all(map(self._makes_layer, made))

    def _runs_over_layers(self, node: ast.AST) -> bool:
        """Whether `node` is the `for` of the elements of a list of such layers, or their number and themselves."""
        if isinstance(node, ast.Tuple):
            loop = self.source.parents[node]
            given = loop.iter if isinstance(loop, ast.For) else None
            counted = isinstance(given, ast.Call) and ast.unparse(given.func) == "enumerate"
            return counted and isinstance(given, ast.Call) and self._is_list_of_layers(given.args[0])
        return isinstance(node, ast.For) and self._is_list_of_layers(node.iter)

    def _made_as(self, node: ast.expr) -> list[ast.expr]:
        """What the class assigns to the attribute `node`."""
        if not isinstance(node, ast.Attribute):
            return []
        return [
            each.value
            for source in self.sources
            for each in ast.walk(source.tree)
            if isinstance(each, ast.Assign)
            and any(isinstance(one, ast.Attribute) and one.attr == node.attr for one in each.targets)
        ]

    def _is_layer_elsewhere(self, node: ast.expr) -> bool:
        """Whether all that is assigned to the attribute `node`, but for itself on another device, are such layers."""
        made = [each for each in self._made_as(node) if not _is_moved(each)]
        return bool(made) and all(map(self._makes_layer, made))

    def _makes_layer(self, node: ast.expr) -> bool:
        if isinstance(node, ast.IfExp):
            return self._makes_layer(node.body) and self._makes_layer(node.orelse)
        if _is_moved(node):
            # `self.lstm = self.lstm.cuda()` is the layer that it was.
            assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            inner = node.func.value
            return self._makes_layer(inner) or self._is_layer_elsewhere(inner)
        return (
            isinstance(node, ast.Call)
            and self._is_class(node.func)
            and not any(key.arg in (None, "proj_size") for key in node.keywords)
        )

    def _is_class(self, node: ast.expr) -> bool:
        """Whether `node` is torch.nn's class of a recurrent layer, or chosen among those."""
        if isinstance(node, ast.IfExp):
            return self._is_class(node.body) and self._is_class(node.orelse)
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Dict) and all(map(self._is_class, node.value.values))
        if isinstance(node, ast.Call):
            # No other class of torch.nn takes packed sequences.
            chosen = ast.unparse(node.func) == "getattr" and len(node.args) == 2
            return chosen and self.draft.qualified(node.args[0]) == "torch.nn"
        if self.draft.qualified(node) in ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"):
            return True
        source = next(each for each in self.sources if node in each.parents)
        function = source.enclosing_function(node)
        stores = [
            source.parents[each]
            for each in (ast.walk(function) if isinstance(node, ast.Name) and function is not None else ())
            if isinstance(each, ast.Name) and each.id == ast.unparse(node) and isinstance(each.ctx, ast.Store)
        ]
        return bool(stores) and all(
            isinstance(each, ast.Assign)
            and isinstance(each.targets[0], ast.Name)
            and self._is_class(each.value)
            for each in stores
        )

    def _is_list_of_layers(self, node: ast.expr) -> bool:
        made = self._made_as(node)
        if len(made) != 1 or not isinstance(node, ast.Attribute):
            return False
        [first] = made
        if not (
            isinstance(first, ast.Call)
            and self.draft.qualified(first.func) == "torch.nn.ModuleList"
            and len(first.args) < 2
            and not first.keywords
        ):
            return False
        held: list[ast.expr] = []
        for given in first.args:
            if isinstance(given, ast.List):
                held += given.elts
            elif isinstance(given, (ast.ListComp, ast.GeneratorExp)):
                held.append(given.elt)
            else:
                return False
        for source, each in ((one, each) for one in self.sources for each in ast.walk(one.tree)):
            taken = isinstance(each, ast.Attribute) and isinstance(each.value, ast.Attribute)
            if taken and isinstance(each, ast.Attribute) and each.value.attr == node.attr:  # type: ignore[attr-defined]
                call = source.parents[each]
                if each.attr != "append" or not isinstance(call, ast.Call):
                    return False
                held += call.args
        return bool(held) and all(map(self._makes_layer, held))
