"""What calls outside torch's operators do that a traced graph cannot hold: a table by qualified name.

Sources: the Python and NumPy references for what draws random numbers, reads clocks, or touches the world.
What torch.export does with them is not stated here but measured (docs/torch-calls.md).
"""

from __future__ import annotations

from exportlens.inference.knowledge.model import EffectKind

_Entry = tuple[EffectKind, str]


def _table(kind: EffectKind, **returns: str) -> dict[str, _Entry]:
    return {name: (kind, word) for word, names in returns.items() for name in names.split()}


EFFECTS: dict[str, _Entry] = {
    **_table(
        EffectKind.SEED,
        none="random.seed random.setstate numpy.random.seed numpy.random.set_state torch.set_rng_state "
        "torch.cuda.manual_seed torch.cuda.manual_seed_all "
        "torch.cuda.set_rng_state torch.random.set_rng_state",
        any="torch.manual_seed torch.random.manual_seed torch.seed torch.random.fork_rng",
        int="torch.initial_seed",
        tensor="torch.get_rng_state torch.cuda.get_rng_state",
    ),
    **_table(
        EffectKind.RANDOM,
        float="random.random random.uniform random.gauss random.normalvariate random.betavariate "
        "random.triangular random.expovariate random.gammavariate "
        "random.lognormvariate random.vonmisesvariate "
        "random.paretovariate random.weibullvariate numpy.random.uniform "
        "numpy.random.normal numpy.random.random",
        int="random.randint random.randrange random.getrandbits random.binomialvariate secrets.randbelow "
        "secrets.randbits",
        list="random.choices random.sample",
        none="random.shuffle numpy.random.shuffle",
        any="random.choice random.Random random.SystemRandom random.randbytes "
        "secrets.choice secrets.SystemRandom "
        "secrets.token_bytes secrets.token_hex secrets.token_urlsafe os.urandom uuid.uuid1 uuid.uuid4 "
        "numpy.random.default_rng numpy.random.RandomState numpy.random.Generator",
    ),
    **_table(
        EffectKind.CLOCK,
        float="time.time time.perf_counter time.monotonic time.process_time time.thread_time",
        int="time.time_ns time.perf_counter_ns time.monotonic_ns time.process_time_ns time.thread_time_ns",
        any="datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.date.today "
        "time.localtime time.gmtime time.ctime time.strftime timeit.default_timer timeit.timeit",
        none="time.sleep",
    ),
    **_table(
        EffectKind.IDENTITY,
        int="builtins.id builtins.hash sys.getrefcount",
        any="weakref.ref weakref.proxy gc.get_referrers gc.get_objects "
        "inspect.currentframe inspect.stack sys._getframe",
    ),
    **_table(
        EffectKind.READS_WORLD,
        any="builtins.open builtins.input io.open os.environ.get os.getenv "
        "os.listdir os.getcwd os.getpid os.stat "
        "os.walk os.scandir glob.glob pathlib.Path.read_text "
        "pathlib.Path.read_bytes pathlib.Path.open torch.load "
        "numpy.load json.load pickle.load yaml.safe_load requests.get urllib.request.urlopen socket.socket "
        "platform.system platform.machine sys.stdin.readline builtins.eval builtins.exec builtins.__import__ "
        "importlib.import_module",
        bool="os.path.exists os.path.isfile os.path.isdir pathlib.Path.exists pathlib.Path.is_file",
    ),
    **_table(
        EffectKind.WRITES_WORLD,
        any="os.system subprocess.run subprocess.call subprocess.check_output "
        "subprocess.Popen os.makedirs os.mkdir "
        "os.remove os.rename os.replace shutil.copy shutil.rmtree "
        "pathlib.Path.write_text pathlib.Path.write_bytes "
        "tempfile.NamedTemporaryFile tempfile.TemporaryDirectory",
        none="torch.save numpy.save numpy.savez json.dump pickle.dump sys.stdout.write sys.stderr.write "
        "torchvision.utils.save_image",
        int="os.write",
    ),
    **_table(
        EffectKind.LOGS,
        none="builtins.print logging.debug logging.info logging.warning logging.error "
        "logging.critical logging.exception logging.log logging.Logger.debug logging.Logger.info "
        "logging.Logger.warning logging.Logger.error logging.Logger.critical logging.Logger.exception "
        "logging.Logger.log logging.basicConfig traceback.print_exc pprint.pprint",
        any="logging.getLogger",
    ),
    **_table(
        EffectKind.WARNS,
        none="warnings.warn warnings.warn_explicit warnings.simplefilter "
        "warnings.filterwarnings warnings.resetwarnings",
        any="warnings.catch_warnings",
    ),
    **_table(EffectKind.COPIES, any="copy.copy copy.deepcopy pickle.loads pickle.dumps"),
    **_table(
        EffectKind.CONCURRENCY,
        any="threading.Thread threading.Lock threading.RLock threading.Event threading.Condition "
        "threading.Semaphore threading.local multiprocessing.Process "
        "multiprocessing.Pool multiprocessing.Queue "
        "concurrent.futures.ThreadPoolExecutor "
        "concurrent.futures.ProcessPoolExecutor asyncio.run asyncio.gather "
        "queue.Queue torch.multiprocessing.spawn torch.jit.fork torch.jit.wait",
    ),
    **_table(
        EffectKind.EXITS,
        none="sys.exit os._exit os.abort builtins.exit builtins.quit builtins.breakpoint pdb.set_trace",
    ),
    **_table(
        EffectKind.SYNC,
        none="torch.cuda.synchronize torch.cuda.empty_cache torch.distributed.barrier torch.mps.synchronize",
        int="torch.cuda.memory_allocated torch.cuda.max_memory_allocated",
        any="torch.distributed.all_reduce torch.distributed.all_gather torch.distributed.broadcast "
        "torch.distributed.reduce torch.distributed.send torch.distributed.recv",
    ),
}

# What a whole module does: the longest matching prefix would never differ from the first here.
EFFECT_PREFIXES: dict[str, _Entry] = {
    "numpy.random.": (EffectKind.RANDOM, "any"),
    "random.": (EffectKind.RANDOM, "any"),
    "secrets.": (EffectKind.RANDOM, "any"),
    "subprocess.": (EffectKind.WRITES_WORLD, "any"),
    "shutil.": (EffectKind.WRITES_WORLD, "any"),
    "socket.": (EffectKind.READS_WORLD, "any"),
    "requests.": (EffectKind.READS_WORLD, "any"),
    "urllib.request.": (EffectKind.READS_WORLD, "any"),
    "threading.": (EffectKind.CONCURRENCY, "any"),
    "multiprocessing.": (EffectKind.CONCURRENCY, "any"),
    "asyncio.": (EffectKind.CONCURRENCY, "any"),
    "logging.": (EffectKind.LOGS, "any"),
}
