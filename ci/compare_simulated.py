#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How well the simulated device foretells what was measured: ci/compare_simulated.py [--within PERCENT] MEASURED SIMULATED
Both are files of `stepgate run ... --json` of the same scenarios, the second with `--device simulated:<profile>`. A line a variant:
the mean step, the collectives of a step, what of them is exposed and how many times as long kernels take beside them, measured and
simulated, and by how much the simulated step is shorter (-) or longer. Exit code 0: all steps are within PERCENT (8); 1: one is not; 2: the files are not two such runs."""
import argparse, json, sys


def refuse(why):
    print(f"compare_simulated: {why}", file=sys.stderr)
    sys.exit(2)


def scenarios_of(path, kind):
    try:
        with open(path, encoding="utf-8") as file:
            reports = [json.loads(line) for line in file]
        scenarios = {report["scenario"]: report for report in reports if "scenario" in report}
        for name, report in scenarios.items():
            if (report["device"]["kind"] == "simulated") != (kind == "simulated"):
                refuse(f"'{name}' of {path} is not {kind}: the measured run comes first, then the simulated one")
    except (OSError, ValueError, KeyError, TypeError) as error:
        refuse(f"{path} is no file of `stepgate run --json`: {error!r}")
    return scenarios


COMMUNICATION = {"comm_us": 1e3, "exposed_comm_us": 1e3, "comm_stretch": 1}  # from base units


def communication_of(report, variant):  # of a step; "-" where nothing was traced or nothing communicates
    values = {}
    for traced in (report["mechanism"] or {"variants": []})["variants"]:
        if traced["name"] == variant:
            values = traced["values"]
    return [f"{unit * values[metric]:.2f}" if metric in values else "-" for metric, unit in COMMUNICATION.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--within", type=float, default=8, metavar="PERCENT")
    parser.add_argument("measured")
    parser.add_argument("simulated")
    given = parser.parse_args()
    measured, simulated = scenarios_of(given.measured, "measured"), scenarios_of(given.simulated, "simulated")
    rows, beyond, left_out = [], [], sorted(measured.keys() ^ simulated.keys())
    for name in measured.keys() & simulated.keys():
        real, model = measured[name], simulated[name]
        if not real["variants"] or not model["variants"]:  # one was skipped
            left_out.append(name)
            continue
        if real["fingerprint"] != model["fingerprint"]:
            refuse(f"'{name}' is another scenario in the two runs")
        steps = {variant["name"]: variant["step_seconds_mean"] for variant in model["variants"]}
        for variant in real["variants"]:
            times = variant["step_seconds_mean"], steps.get(variant["name"])
            if None in times:  # a scenario that was skipped, or decided by its plans
                continue
            off = 100 * (times[1] / times[0] - 1)
            both = zip(communication_of(real, variant["name"]), communication_of(model, variant["name"]))
            rows.append([f"{name}.{variant['name']}", *(f"{1e3 * time:.2f}" for time in times), *(text for pair in both for text in pair),
                         f"{off:+.1f} %"])
            if abs(off) > given.within:
                beyond.append(rows[-1][0])
    if not rows:
        refuse("no variant was run in both")
    rows = [["ms: variant", "step", "simulated", "collectives", "simulated", "exposed", "simulated", "stretch", "simulated", "off by"], *sorted(rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for first, *others in rows:
        print(first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(others, widths[1:])), sep="  ")
    print(f"{len(rows) - 1 - len(beyond)} of {len(rows) - 1} steps within {given.within:g} %" + "".join(f"; not {name}" for name in beyond))
    if left_out:
        print("not compared, as one of the runs has no steps of it: " + ", ".join(left_out))
    sys.exit(1 if beyond else 0)


main()
