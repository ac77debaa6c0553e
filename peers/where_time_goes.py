"""Where the time of a compiled run goes, from the native stacks that Linux's perf sampled.

    perf record -e cpu-clock:u -F 999 --call-graph dwarf,8192 -o run.perf \\
        python -c 'import os; from roamcast.bench.forms import short_run; from roamcast.world.simulator import simulate
    simulate(short_run("overlays")); os._exit(0)'
    perf script -i run.perf -F ip,sym | python peers/where_time_goes.py

A sample belongs to the layer of the compiled function that is innermost on its stack, and to the kind of work that the
innermost function of all does. Samples outside of the simulation, such as imports, do not count. The answer is two
lines: shares by layer and by kind of work, in per cent.
"""

import re
import sys
from collections import Counter

LAYERS = {
    "event queue": ("scheduler",),
    "radio": ("dcf", "station", "medium", "interference", "rate", "modulation", "topology"),
    "contract": ("host", "components", "fragmentation", "api"),
    "recorder": ("recorder",),
    "simulator": ("simulator", "contacts", "nearby", "movements", "mobility", "workload", "causal_workload", "energy"),
}
PROTOCOL = "protocol"
WORK = {
    "reference counts": r"Py_X?(INC|DEC)REF",
    "allocation": r"Malloc|Free|_free|malloc|dealloc|_clear$|GC_|gc_|New$|NewReference|Realloc|_traverse",
    "dictionaries and hashes": r"[Dd]ict|lookup|hash|Hash",
    "numbers as objects": r"PyLong|long_|PyFloat|float_|CPyTagged",
    "attributes of messages": r"GetAttr|Member|Type_Lookup|getattr",
    "calls between Python and C": r"[Vv]ectorcall|[Cc]all|EvalFrame|getargs|CPyArg|CPyPy_",
    "encoding messages": r"mpack|msgpack",
}
COMPILED = re.compile(r"CPyDef_(\w+?)___")
SIMULATION = "CPyDef_simulator___simulate"


def layer(function: str) -> str:
    found = COMPILED.match(function)
    module = found.group(1) if found else ""
    return next((name for name, modules in LAYERS.items() if module in modules), PROTOCOL)


def work(function: str) -> str:
    if function.startswith("CPyDef"):
        return "compiled code itself"
    return next((name for name, pattern in WORK.items() if re.search(pattern, function)), "other")


def shares(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {100 * count / counted.total():.0f}" for name, count in counted.most_common())


def main() -> None:
    layers: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for sample in sys.stdin.read().split("\n\n"):
        stack = [line.split(None, 1)[1] for line in sample.splitlines() if len(line.split(None, 1)) == 2]
        if not any(function.startswith(SIMULATION) for function in stack):
            continue
        compiled = next(function for function in stack if function.startswith("CPyDef"))
        layers[layer(compiled)] += 1
        kinds[work(stack[0])] += 1
    print(f"by layer ({layers.total()} samples): {shares(layers)}")
    print(f"by work: {shares(kinds)}")


if __name__ == "__main__":
    main()
