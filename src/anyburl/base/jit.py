"""The decorators `kernel`, `part`, `inlined` and `merged`, and the cache of kernels; the only file that imports Numba.

Numba's own cache watches a kernel's own file only: after an edit to a function that the kernel calls, or to a
NamedTuple that it reads, stale machine code would run. So each file of kernels has a cache folder whose name holds a
digest of that file and of the files that it imports: an edit compiles only what depends on it, and a copy of the same
sources elsewhere (another clone, another environment) compiles nothing. Numba's cache also falls back to folders beside
the sources, fails at a damaged file, and may mix up two processes that compile a kernel for different types of
arguments; the cache here does not.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from llvmlite import binding, ir
from numba.core import caching, event, types
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import models, register_default
from numba.core.imputils import user_function
from numba.core.ir import Assign, Del
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic
from platformdirs import user_cache_path

from anyburl.base.files import alone

LOCK = "lock"
_failures: list[OSError] = []


def keep_compiled(dispatcher: Any, folder: Path) -> None:
    """Make `dispatcher` use the cache in `folder`."""
    dispatcher._cache = _KeptKernel(dispatcher.py_func, folder)


def why_not_kept() -> OSError | None:
    """Return why a compiled kernel could not be written to the cache, if that has happened."""
    return _failures[0] if _failures else None


class _KeptKernel(caching.FunctionCache):  # type: ignore[misc]
    """The cache files of one kernel. Damaged ones are compiled again; failures to write are only noted.

    Most kernels that a short command imports are not called: what Numba needs to know of them is computed later.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._function = function
        self._impl_class = lambda function: _Files(function, folder)

    def __getattr__(self, name: str) -> Any:
        if "_enabled" in vars(self):
            raise AttributeError(name)
        super().__init__(self._function)
        return getattr(self, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for some types of arguments, None if it is not cached.

        Numba would first import all it knows about compiling (`target_context.refresh()`), which takes a third of the
        time of a short command; a compilation does that by itself.
        """
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # damaged pickles have no one kind of error
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache the kernel for some types of arguments."""
        folder = Path(self.cache_path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with alone(folder / LOCK):
                self._forget_if_damaged()
                super().save_overload(sig, data)
        except OSError as error:
            _failures.append(error)

    def _forget_if_damaged(self) -> None:
        try:
            self._cache_file._load_index()
        except OSError:
            raise
        except Exception:
            self.flush()


class _Files(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """The names and contents of a kernel's cache files."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._locator_classes = [_Locators(folder)]
        super().__init__(function)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the compiled function that `payload` was made of."""
        (name, form, code), fndesc, environment, signature, *_ = payload
        if form != _PartLibrary.FORM:
            return super().rebuild(target_context, payload)
        library = _PartLibrary(target_context.codegen(), name)
        library._final_module = binding.parse_bitcode(code)
        library._finalize_final_module()
        return compile_result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=library,
            fndesc=fndesc,
            signature=signature,
            objectmode=False,
            lifted=(),
        )


class _Locators:
    """Takes the role of a class of locators, all of which point to one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def from_function(self, function: Callable[..., Any], file: str) -> _Locator:
        """Return the locator of a function."""
        return _Locator(function, self._folder)


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """The cache folder of a function; unlike Numba's own locators, it writes nothing to test whether it can."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._folder = folder

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return what changes with the sources: the folder's name, which holds their digest."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return str(self._lineno)

    def ensure_cache_path(self) -> None:
        """Do nothing: `save_overload` creates the folder."""


P = ParamSpec("P")
R = TypeVar("R")

KERNEL_SOURCES = ("kernel*.py", "arrays.py", "rng.py", "rules/types.py")


def kernel_sources() -> list[Path]:
    """Return the files that may define kernels and the NamedTuples that they read."""
    package = Path(__file__).parents[1]
    return sorted({path for pattern in KERNEL_SOURCES for path in package.rglob(pattern)})


_IMPORT = re.compile(rb"^ *from anyburl\.([\w.]+) import", re.MULTILINE)


def sources_of(path: Path) -> dict[str, bytes]:
    """Return the texts that the machine code of the kernels in `path` depends on, by their place in the package.

    These are the file, the files of kernels that it imports, those that they import and so on, and this file.
    """
    package = Path(__file__).parents[1]
    texts: dict[str, bytes] = {}
    waiting = [Path(__file__), path]
    while waiting:
        source = waiting.pop()
        name = source.relative_to(package).as_posix() if source.is_relative_to(package) else source.name
        if name not in texts:
            texts[name] = _text(source)
            imported = (match.decode().replace(".", "/") + ".py" for match in _IMPORT.findall(texts[name]))
            waiting += [package / file for file in imported if _is_kernel_source(file)]
    return texts


def _is_kernel_source(file: str) -> bool:
    return any(Path(file).match(pattern) for pattern in KERNEL_SOURCES)


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


@cache
def cache_folder(path: Path) -> Path:
    """Return the folder of the compiled kernels of a file."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name, text in sorted(sources_of(path).items()):
        digest.update(name.encode() + text)
    mode = "checked" if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else "fast"
    return _cache_dir / f"{path.parent.name}-{path.stem}-{digest.hexdigest()[:16]}-{mode}"


_config = vars(numba.config)
_cache_dir = Path(os.environ.get("ANYBURL_CACHE") or user_cache_path("anyburl")) / "kernels"


def is_compiled(name: str = "") -> bool:
    """Whether kernels of this version, or the one of that name ("kernel.answer"), are in the cache."""
    stem = name.partition(".")[0]
    return any(_holds(cache_folder(path), name) for path in kernel_sources() if not stem or path.stem == stem)


def _holds(folder: Path, name: str) -> bool:
    try:
        return any(folder.glob(f"{name}*.nbi"))
    except OSError:  # a cache of somebody else
        return False


def not_kept() -> str | None:
    """Return a sentence if compiled kernels could not be written to the cache."""
    error = why_not_kept()
    if error is None:
        return None
    reason = error.strerror or error
    return (
        f"compiled kernels cannot be kept in {_cache_dir} ({reason}): set ANYBURL_CACHE to a folder that can be written"
    )


def compiling(work: Callable[[], object], say: Callable[[str], None]) -> None:
    """Do `work`, and call `say` with each room whose kernels are compiled meanwhile: "graph", "bodies"."""
    with event.install_listener("numba:compile", _Stages(say)):
        work()


class _Stages(event.Listener):  # type: ignore[misc]
    """Is called for every function that is compiled."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._stage = say, ""

    def on_start(self, event: Any) -> None:
        """Say the room, if it is another one than before."""
        package, _, module = event.data["dispatcher"].py_func.__module__.partition(".")
        stage = module.partition(".")[0]
        if package == "anyburl" and stage != self._stage:
            self._stage = stage
            self._say(stage)

    def on_end(self, event: Any) -> None:
        """Do nothing; Numba requires the method."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on its first call from Python: without the GIL, cached on disk.

    Kernels allocate nothing (`_nrt=False`, a private option of Numba's): a kernel that does is refused, and no
    array's reference count is touched. With counting on, every array of a NamedTuple is counted at every use, which
    made harvests 2 to 8 times slower.
    """
    return _compile(_Kernel, function)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` once, for any number of kernels to call; Python cannot call it.

    A function that Python can call needs code that unpacks every array of every NamedTuple; without it, compiling takes
    two thirds of the time.
    """
    return _compile(_Part, function)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` as a `part`, and its machine code into its callers: for what runs once per edge or rule.

    A call costs more than such a function does: the arrays of a NamedTuple are passed one by one.
    """
    return _compile(_Part, function, forceinline=True)


def merged(function: Callable[P, R]) -> Callable[P, R]:
    """Copy the source of `function` into its callers, as if it were written there: for a long one with few callers.

    A part has code that passes the arrays of its NamedTuples one by one; a copy has not. For short functions, or many
    callers, `inlined` compiles faster.
    """
    return _compile(_Part, function, inline="always")


def _prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of `array[index]`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        make_array = numba.np.arrayobj.make_array(signature.args[0])  # which Numba has imported in order to compile
        elements = make_array(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(elements, [arguments[1]]), ir.IntType(8).as_pointer())
        code = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, code, code, code])
        intrinsic = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        read_keep_data = [ir.Constant(code, number) for number in (0, 3, 1)]
        builder.call(intrinsic, [address, *read_keep_data])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64), generate


def _nothing(array: Any, index: int) -> None:
    """Do nothing: `prefetch` where nothing is compiled."""


prefetch: Callable[[Any, int], None] = _nothing if _config["DISABLE_JIT"] else intrinsic(_prefetch)


class _Lower(Lower):  # type: ignore[misc]
    """Writes the LLVM code of a kernel.

    Numba keeps a variable on the stack if more than one block of the function uses it, and loads it at every use: all
    arrays of a NamedTuple, for one of them. LLVM removes that again, which takes longer than all the rest.
    """

    def _find_singly_assigned_variable(self) -> None:
        """Keep on the stack only what is assigned twice, or may be read where it was not assigned before."""
        super()._find_singly_assigned_variable()
        if not self.func_ir.func_id.is_generator:
            self._singly_assigned_vars |= _assigned_once(self.func_ir.blocks)


def _assigned_once(blocks: dict[int, Any]) -> set[str]:
    """Return the variables with one assignment that comes before all else that names them, whatever the way there."""
    homes: dict[str, list[int]] = {}
    for label, block in blocks.items():
        for assignment in block.find_insts(Assign):
            homes.setdefault(assignment.target.name, []).append(label)
    dominators = compute_cfg_from_blocks(blocks).dominators()
    found = {name for name, labels in homes.items() if len(labels) == 1}
    for label, block in blocks.items():
        assigned: set[str] = set()
        for statement in block.body:
            own, read = _named(statement)
            for name in read & found:
                [home] = homes[name]
                # Blocks are written in the order of their labels, those that nothing leads to as well.
                if not (name in assigned if home == label else home < label and home in dominators.get(label, ())):
                    found.discard(name)
            assigned |= own
    return found


def _named(statement: Any) -> tuple[set[str], set[str]]:
    """Return the variable that a statement assigns, if it does, and those that it reads."""
    if isinstance(statement, Del):
        return set(), {statement.value}
    if not isinstance(statement, Assign):
        return set(), {variable.name for variable in statement.list_vars()}
    read = statement.value.list_vars() if hasattr(statement.value, "list_vars") else []
    return {statement.target.name}, {variable.name for variable in read}


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


class _Whole(types.Type):  # type: ignore[misc]
    """The type of an argument that is passed to a part as one value: an array, or a tuple with all that is in it."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain
        super().__init__(name=f"whole({plain})")


@register_default(_Whole)
class _WholeModel(models.ProxyModel):  # type: ignore[misc]
    """The same value as of the plain type; as an argument it is not taken apart."""

    def __init__(self, manager: Any, whole: _Whole) -> None:
        super(models.ProxyModel, self).__init__(manager, whole)
        self._proxied_model = manager.lookup(whole.plain)

    def get_argument_type(self) -> Any:
        """Return the type of the value."""
        return self.get_value_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        """Return the value."""
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        """Return the value."""
        return value


def _whole(argument: Any) -> Any:
    return _Whole(argument) if isinstance(argument, (types.BaseTuple, types.Array)) and argument else argument


class _PartLower(_Lower):
    """Writes the LLVM code of a part, which takes its arguments whole."""

    def __init__(self, context: Any, library: Any, fndesc: Any, *given: Any, **named: Any) -> None:
        fndesc.argtypes = tuple(map(_whole, fndesc.argtypes))
        super().__init__(context, library, fndesc, *given, **named)


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):  # type: ignore[misc]
    _name = "part_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _PartLower


class _KernelCompiler(Compiler):  # type: ignore[misc]
    """Compiles a kernel."""

    LOWERING: type[NativeLowering] = _Lowering

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Return the compiled function, with machine code that can be cached."""
        if self.state.library is None:
            self.state.library = _KernelLibrary(self.state.targetctx.codegen(), function.__qualname__)
            self.state.library.enable_object_caching()
        return super().compile_extra(function)

    def define_pipelines(self) -> Any:
        """Return the steps of compiling."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [
                (self.LOWERING if step is NativeLowering else step, title) for step, title in pipeline.passes
            ]
        return pipelines


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls."""

    def __init__(self, function: Callable[..., Any], targetoptions: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=targetoptions, pipeline_class=_KernelCompiler)

    def compile(self, sig: Any) -> Any:
        """Compile with the garbage collector off: it takes a tenth of the time."""
        if not gc.isenabled():
            return super().compile(sig)
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            gc.enable()


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel, which is optimised once, with all that it calls in it.

    Numba would optimise each function by itself as well, before it is known what becomes of it in its callers. All that
    is worth doing there is to make it smaller.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder(opt=0, loop_vectorize=False, slp_vectorize=False)
        passes = binding.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class _PartLibrary(_KernelLibrary):
    """The code of a part, which is optimised and made machine code only within the kernels that call it.

    Numba would do both for every part by itself, with all that it calls in it, and throw the result away.
    """

    FORM = "part"

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel."""

    def _finalize_final_module(self) -> None:
        """Give it to no execution engine."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return what is cached: there is no machine code."""
        self._ensure_finalized()
        return self.name, self.FORM, self._final_module.as_bitcode()


class _PartCompiler(_KernelCompiler):
    """Compiles a part up to its LLVM code."""

    LOWERING = _PartLowering

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Return the compiled function; its library takes the role of the address by which callers know it."""
        state = self.state
        state.library = _PartLibrary(state.targetctx.codegen(), function.__qualname__)
        state.flags.no_compile = True
        return super().compile_extra(function)._replace(entry_point=state.library)


class _Part(CPUDispatcher):  # type: ignore[misc]
    """A function that kernels call, compiled once for all widths of integers.

    Numba would compile it for int16, int32, int64 and for literals, even where a literal is only the first value
    of a variable that a loop changes.
    """

    def __init__(self, function: Callable[..., Any], targetoptions: dict[str, Any]) -> None:
        options = {**targetoptions, "no_cpython_wrapper": True}
        super().__init__(function, targetoptions=options, pipeline_class=_PartCompiler)

    def get_call_template(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        """Return the compiled function for a call by a kernel."""
        return super().get_call_template(tuple(map(_widened, args)), kws)

    def add_overload(self, result: Any) -> None:
        """Note a compiled function, and how kernels call it: for the types of its arguments, which it takes whole."""
        call = user_function(result.fndesc, [result.library])
        self.targetctx._defns[result.entry_point].append(call, result.signature.args)
        self.overloads[tuple(result.signature.args)] = result

    def __call__(self, *args: Any, **kws: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is part of kernels: Python cannot call it")


def _widened(argument: Any) -> Any:
    plain = numba.types.unliteral(argument)
    return numba.types.int64 if isinstance(plain, numba.types.Integer) and plain.signed else plain


def _compile(dispatcher: type[CPUDispatcher], function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if _config["DISABLE_JIT"]:
        return function
    always = {"nopython": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
    compiled: Callable[P, R] = dispatcher(function, targetoptions={**always, **options})
    keep_compiled(compiled, cache_folder(Path(function.__code__.co_filename)))
    return compiled
