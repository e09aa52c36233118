"""Numbers that Python's or NumPy's own generator draws behind a seed that the same function gives it.

A method holds the seed and the draws in their order, so that eager mode leaves the generator as before. That is only so where nothing
else draws from it in between, and where each draw is certainly made.
"""

from __future__ import annotations

import ast
import builtins
import sys

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.calls.seeded_draws import Draws
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.memory.effects import kinds_before

# Generators that are no global ones, and what they are made of.
_OTHERS = frozenset(
    {"Random", "SystemRandom", "RandomState", "default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM",
     "MT19937", "Philox", "SFC64"}
)  # fmt: skip
# Modules whose functions draw from no generator of Python's or NumPy's.
_QUIET = (frozenset(sys.stdlib_module_names) - {"random"}) | {"torch", "numpy", "einops"}


def drawn_globally(place: Call, context: RewriteContext) -> Fix | Refusal | None:
    """`random.seed(self.seed)` and what is drawn behind it, in a method under `torch.compiler.assume_constant_result`; None where the
    function of `place` gives no seed, or draws nothing."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        module, _, word = place.name.rpartition(".")
        function = draft.source.enclosing_function(node)
        if function is None or not isinstance(node, ast.Call) or word in _OTHERS:
            return None
        names = [draft.qualified(each.func) for each in ast.walk(function) if isinstance(each, ast.Call)]
        own = [each for each in names if each.rpartition(".")[0] == module]
        if f"{module}.seed" not in own or not {each.rpartition(".")[2] for each in own} - {*_OTHERS, "seed"}:
            return None
        return GlobalDraws(draft, node, module).fix()
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def refuse_seeded_outside(draft: Draft, node: ast.Call, name: str) -> None:
    """Raise Refused where another method of the class gives the generator a seed: what it draws may be the same in each call."""
    seed = f"{name.rpartition('.')[0]}.seed"
    for function in ast.walk(draft.source.tree):
        if isinstance(function, ast.FunctionDef) and function.name != "__init__":
            for each in ast.walk(function):
                if isinstance(each, ast.Call) and draft.qualified(each.func) == seed:
                    text = f"`{draft.source.of(each)}` in `{function.name}`"
                    raise Refused(
                        f"{text} may make what `{draft.source.of(node)}` draws the same in each call"
                    )


class GlobalDraws(Draws):
    """All that one function draws from the generator of the module `module`."""

    def __init__(self, draft: Draft, node: ast.Call, module: str) -> None:
        self.module = module
        super().__init__(draft, node)

    def is_draw(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and self._is_global(node.func) and node is not self.maker

    def _is_global(self, node: ast.expr) -> bool:
        """Whether `node` is a function of the generator, or the module itself."""
        name = self.draft.qualified(node)
        head, _, word = name.rpartition(".")
        return name == self.module or (head == self.module and word not in _OTHERS)

    def _begin(self, node: ast.Call) -> tuple[ast.stmt, ast.Call, str]:
        """The statement that gives the seed."""
        seeds = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Call) and self.draft.qualified(each.func) == f"{self.module}.seed"
        ]
        statement = self.source.parents[seeds[0]]
        if len(seeds) != 1 or not isinstance(statement, ast.Expr):
            raise Refused(f"`{self.source.of(seeds[0])}` is not the only seed of the function")
        return statement, seeds[0], "numpy" if self.module.startswith("numpy") else "python"

    def refuse_maker(self) -> None:
        text = self.source.of(self.maker)
        given = [*self.maker.args, *(key.value for key in self.maker.keywords)]
        if dotted(self.maker.func) is None or self._is_bound_here(self.maker.func):
            raise Refused(f"`{text}` is not known to be of the file's own imports")
        if len(given) != 1:
            raise Refused(f"`{text}` is not known to be the same in each call")
        self.refuse_open(given[0])
        if not self.is_seed(given[0]):
            raise Refused(f"`{text}` may be given None, and then draws other numbers in each call")

    def _is_bound_here(self, node: ast.expr) -> bool:
        return (dotted(node) or "").partition(".")[0] in bound(self.function.body)

    def calls(self) -> list[ast.Call]:
        found: list[ast.Call] = []
        for each in ast.walk(self.function):
            if not isinstance(each, (ast.Name, ast.Attribute)) or not self._is_global(each):
                continue
            parent = self.source.parents[each]
            if isinstance(parent, ast.Attribute):
                continue
            if not isinstance(parent, ast.Call) or parent.func is not each or self._is_bound_here(each):
                raise Refused(
                    f"`{self.source.of(each)}` is handed on, and what else draws from it is not followed"
                )
            if parent is not self.maker:
                found.append(parent)
        found.sort(key=self.source.start)
        self._refuse_between(found)
        return found

    def _refuse_between(self, calls: list[ast.Call]) -> None:
        """Raise Refused where something else may draw behind the seed and before the last of `calls`, or leave that out."""
        loops = [self.loop_of(each) for each in calls]
        last = max(
            (
                self.source.start(call) if loop is None else self.source.end(loop)
                for call, loop in zip(calls, loops, strict=True)
            ),
            default=-1,
        )
        between = [
            each
            for statement in self.block[self.first + 1 :]
            if self.source.start(statement) < last
            for each in ast.walk(statement)
            if not hasattr(each, "lineno") or self.source.start(each) <= last
        ]
        final = {self.source.enclosing_statement(each) for each in calls}
        for each in between:
            if isinstance(each, (ast.Return, ast.Break, ast.Continue)) and each not in final:
                raise Refused(f"`{self.source.of(each)}` may leave out what is drawn behind it")
            if isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)):
                raise Refused("the function is left while it draws")
        asked = [each for each in between if isinstance(each, ast.Call) and each not in calls]
        for each in asked:
            head = self.draft.qualified(each.func).partition(".")[0]
            if (dotted(each.func) or "").partition(".")[0] in self.draft.modules and head not in _QUIET:
                raise Refused(f"whether `{self.source.of(each)}` draws from the same generator is not known")
        if not all(self._is_quiet(each) for each in asked):
            self._refuse_elsewhere()

    def _is_quiet(self, call: ast.Call) -> bool:
        """Whether `call` certainly runs no function of the file."""
        func = call.func
        head = (dotted(func) or "").partition(".")[0]
        if head in self.draft.modules:
            return not self._is_bound_here(func)
        if isinstance(func, ast.Name):
            own = {
                each.name
                for chunk in [self.draft.chunk, *self.draft.others()]
                for each in chunk.body
                if isinstance(each, (ast.FunctionDef, ast.ClassDef))
            }
            return hasattr(builtins, func.id) and func.id not in own and not self._is_bound_here(func)
        if not isinstance(func, ast.Attribute) or head == "self":
            return False
        statement = self.source.enclosing_statement(call)
        kinds = kinds_before(self.function, statement, self.draft.kinds({}))
        return kinds.of(func.value).what in ("tensor", "number", "static")

    def _refuse_elsewhere(self) -> None:
        """Raise Refused where another function of the file works on the generator."""
        for chunk in self.draft.others():
            for each in chunk.body:
                self._refuse_in(each)
        for other in ast.walk(self.source.tree):
            if isinstance(other, (ast.FunctionDef, ast.AsyncFunctionDef)) and other is not self.function:
                if any(one is self.function for one in ast.walk(other)):
                    continue
                # The model is made before it is called.
                if other.name != "__init__" or other not in self.cls.body:
                    self._refuse_in(other)

    def _refuse_in(self, node: ast.AST) -> None:
        for function in ast.walk(node):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            nodes = list(ast.walk(function))
            of_others = {id(each.value) for each in nodes if isinstance(each, ast.Attribute)}
            for each in nodes:
                if id(each) in of_others or not isinstance(each, (ast.Name, ast.Attribute)):
                    continue
                if self._is_global(each):
                    name = getattr(function, "name", "a lambda")
                    raise Refused(
                        f"`{name}` works on the same generator, and may do so between the seed and what is drawn"
                    )
