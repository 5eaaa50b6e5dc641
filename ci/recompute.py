#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recomputes what `stepgate run ... --json FILE` decided from what it measured: ci/recompute.py FILE
Exit code 0: all is as FILE says; 1: a line for each difference; 2: FILE cannot be read. The last line has the run's tally and exit
code. Taken at FILE's word: what a plan counts and a traced round gives, `suite_lines`, contrasts of earlier runs, assertions about stored
runs, which the baseline decides, doubts about rounds, which ask the plan, and that a scenario is broken, failed or skipped. Not looked at, as
they decide nothing: estimates and intervals, which follow from contrasts, `clocks`, `mechanism`, means in `variants`, reasons in words."""
import json, math, operator, re, statistics as st, sys
BETS, STAKE = ((0.25, 0.1), (0.5, 0.2), (1.0, 0.3), (2.0, 0.4)), 0.95  # multipliers and weights: base/stats/e_process.h
UNITS = {"": 1, "%": 0.01, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "GB/s": 1e9}
NOTHING = {"migrated_bytes_per_step": 1e-3, "h2d_gbps": 1e-12, "kernel_gbps": 1e-12}
FROM_WORST = {"fails": 1, "device failed": 3, "program failed": 3, "broken": 2, "machine slower": 4, "not comparable": 4, "no baseline": 4, "not gated": 4, "undecided": 77, "skipped": 77, "passes": 0}  # exit codes
OF_SEVERAL = {"passes": "pass", "fails": "fail"}
RELATION = re.compile(r"(.+?)(<=|>=|==|~=|<|>)(.+?)(?:\bwithin\s*([\d.eE+-]+)\s*%\s*)?$")
FACTOR = re.compile(r"(\d[\d.]*(?:[eE][+-]?\d+)?)\s*([A-Za-z%/]*)|([A-Za-z_][\w.]*(?:\(\w+\))?)")
CLASSES = ("data", "copy", "compute", "host")  # of a variant.bound

class Assertion:  # two sides, each a sum of products of numbers, variant.metric and sizes: scenarios/README.md
    def __init__(self, text):
        left, self.relation, right, within = RELATION.match(re.sub(r"(\d[eE])\+", r"\1", text)).groups("0")
        self.within, self.sides = float(within) / 100, [side.split("+") for side in (left, right)]
        names = [[name for *_, name in FACTOR.findall(side) if name] for side in (left, right)]
        self.variants, _, self.metrics = zip(*(name.rpartition(".") for name in sum(names, []) if "." in name))
        self.compares = [*map(len, (*self.sides, *names, set(self.variants), set(self.metrics)))] == [1, 1, 1, 1, 2, 1] and self.metrics[0] not in ("step_ms_max", "slow_step_share")  # two variants, and not by a few steps
        self.bounds = [] if self.relation in ("<", "<=") else [(1, math.log(max(1 - self.within, 1e-9)))]
        self.bounds += [] if self.relation in (">", ">=") else [(-1, math.log1p(self.within))]  # of log(left / right)
    def values(self, *where):  # of both sides in base units; NaN where something is not known
        return [sum(math.prod(float(number) * UNITS[unit.removesuffix("/step")] if number else value(name, *where)
                              for number, unit, name in FACTOR.findall(product)) for product in side) for side in self.sides]
    def limit(self):  # the factor between the two metrics of a comparison
        left, right = (math.prod(float(number) * UNITS[unit] for number, unit, name in FACTOR.findall(side[0]) if number) for side in self.sides)
        return right / left
    def keeps(self, contrast, strictly=True):
        return all(way * (contrast - at) > 0 or (contrast == at and not strictly) for way, at in self.bounds)

def traced_value(metric, here, time):  # the class by judge/verdict/mechanism.h
    kernel, host = here.get("work", {}).get(metric[10:-1], {"seconds": math.nan}), time["idle_for_host"] + time["idle_after_wait"]
    most, bound = max((time["idle_for_data"], "data"), (time["copies"], "copy"), (host, "host"), key=operator.itemgetter(0))
    bound = CLASSES.index(bound if most >= 0.2 * time["step"] else "compute") + 1
    return bound if metric == "bound" else kernel["seconds"] if metric.startswith("kernel_us(") else here["values"].get(metric, math.nan)
def value(name, report, here=None, in_total=False):  # of a size, or of variant.metric in a round, or in segments of several
    variant, _, metric = name.rpartition(".")
    if metric in CLASSES: return 1 + CLASSES.index(metric)
    counts = next((v["counts"] for v in report["variants"] if v["name"] == variant), report)
    if metric in counts or not here: return counts.get(metric, math.nan)
    if isinstance(here, dict): return traced_value(metric, here[variant], here[variant]["time"])
    subject = next(v for v in report["measurement"]["variants"] if v["name"] == variant)
    own = [segment for segment in here if segment["variant"] == variant]
    steps, elapsed = (sum(segment[key] for segment in own) for key in ("steps", "elapsed_ns"))
    host, processor = (sum(math.nan if segment.get(key) is None else segment[key] for segment in own) for key in ("host_busy_ns", "host_processor_ns"))
    times = sorted(time / 1e9 for segment in own for time in segment.get("step_times_ns", [])) or [math.nan]
    if metric.startswith("step_ms_p"): return times[math.ceil(int(metric[-2:]) / 100 * len(times) - 1e-9) - 1]
    step = elapsed / 1e9 / steps if in_total else math.exp(st.fmean(math.log(max(s["elapsed_ns"] / 1e9, 1e-12) / s["steps"]) for s in own))
    return {"step_ms_mean": step, "steps_per_s": 1 / step, "samples_per_s": (subject["batch_size"] or math.nan) / step, "samples_per_s_per_rank": (subject["batch_size"] or math.nan) / subject.get("ranks", 1) / step, "tokens_per_s": (subject.get("tokens") or 0) / step,
            "mfu": (subject.get("model_flops") or 0) / (subject.get("peak_flops_per_second") or math.nan) / step,
            "step_ms_max": times[-1], "slow_step_share": sum(time > 2 * times[(len(times) - 1) // 2] for time in times) / len(times), "host_us": host / 1e9 / steps, "host_cpu_us": processor / 1e9 / steps, "host_share": host / elapsed}.get(metric, math.nan)

def trimmed(own):  # of the steps of a variant in an interleaved round, without the fastest and the slowest of ten
    times = sorted(own["step_times_ns"])[own["steps"] // 10:own["steps"] - own["steps"] // 10]
    return own | {"steps": len(times), "elapsed_ns": sum(times)}
def scale_of(contrasts):  # of their noise, for the next bet
    centre, weight = st.median(contrasts or [0]), max(len(contrasts) - 1, 0)
    middle = sorted(abs(contrast - centre) for contrast in contrasts or [0])[len(contrasts) // 2]
    return max((0.005 + weight * 1.4826 * middle) / (1 + weight), 1e-4)
def added_by_slots(contrasts, slots):  # to the next one; ridge regression on those before: base/stats/place_effects.h
    centre, reach, count = st.median(contrasts or [0]), 3 * scale_of(contrasts), 1 + max(sum(slots, []))
    rows = [[2.0 * (row == column < count) for column in range(count + 2)] for row in range(count + 1)]
    for contrast, (left, right) in zip(contrasts, slots):
        terms = [(slot == left) - (slot == right) for slot in range(count)] + [1, min(max(contrast - centre, -reach), reach)]
        rows = [[a + term * b for a, b in zip(row, terms)] for row, term in zip(rows, terms)]
    for pivot in range(count + 1 if contrasts else 0):
        for row in set(range(count + 1)) - {pivot}:
            rows[row] = [a - rows[row][pivot] / rows[pivot][pivot] * b for a, b in zip(rows[row], rows[pivot])]
    return operator.sub(*(rows[slot][-1] / rows[slot][slot] for slot in slots[len(contrasts)]))

def beyond(left, right, share):  # which of two lists of steps have more beyond their common percentile: base/stats/tail_counts.h
    pool, (own_left, own_right) = sorted(sum(left + right, [])), (left[-1], right[-1])
    limit = pool[math.ceil(share * len(pool) - 1e-9) - 1]
    above, equal = (sum(compare(time, limit) for time in pool) for compare in (operator.gt, operator.eq))
    part = min(max(((1 - share) * len(pool) - above) / equal, 0), 1)
    shares = [sum((time > limit) + part * (time == limit) for time in own) / len(own) for own in (own_left, own_right)]
    return operator.sub(*shares) / math.sqrt(share * (1 - share) * (1 / len(own_left) + 1 / len(own_right)))
def tails(assertion, rounds):  # contrasts of a high percentile, and log(left / right) of it over all steps so far
    share, factor = int(assertion.metrics[0][-2:]) / 100, assertion.limit()
    times = [[[time / 1e9 for s in here if s["variant"] == name for time in s["step_times_ns"]] for here in rounds] for name in assertion.variants]
    left, right = times[0], [[time * factor for time in own] for own in times[1]]
    rank = lambda own: sorted(sum(own, []))[math.ceil(share * sum(map(len, own)) - 1e-9) - 1]
    units = [math.sqrt(math.prod(sorted(own)[math.ceil(len(own) / 2 - 1e-9) - 1] for own in pair)) for pair in zip(left, right)]
    left, right = ([[time / unit for time in own] for own, unit in zip(side, units)] for side in (left, right))
    first = lambda n: next(k for k in range(n) if k == n - 1 or sum(map(len, left[k:n])) <= 6000)  # of those that are remembered
    return ([beyond(left[first(n):n], right[first(n):n], share) for n in range(1, len(rounds) + 1)],
            [math.log(rank(times[0][first(n):n])) - math.log(factor * rank(times[1][first(n):n])) for n in range(1, len(rounds) + 1)])

def error_of_ratio(rounds):  # of total times, by how rounds scatter
    left, right = map(sum, zip(*rounds))
    return math.sqrt(sum((a / left - b / right) ** 2 for a, b in rounds) * len(rounds) / max(len(rounds) - 1, 1))
def compared(assertion, contrasts, totals, errors, report, counts):  # outcome and e-values of a comparison: judge/assertions/timed_assertion.h
    favour = against = [[weight for _, weight in BETS] for _ in assertion.bounds]
    most = [1.0 for _ in assertion.bounds]
    for n, (contrast, total) in enumerate(zip(contrasts, totals)):
        gaps = [way * (contrast - at) / (1 if counts else scale_of(contrasts[:n])) for way, at in assertion.bounds]
        bets = [[STAKE * math.tanh(multiplier * gap) for multiplier, _ in BETS] for gap in gaps]
        favour = [[e * (1 + bet) for e, bet in zip(*claim)] for claim in zip(favour, bets)]
        against = [[e * (1 - bet) for e, bet in zip(*claim)] for claim in zip(against, bets)]
        most = [max(e, sum(claim)) for e, claim in zip(most, favour)]
        e_for, e_against, keeps = min(most), st.fmean(map(sum, against)), None if math.isnan(total) else assertion.keeps(total)
        decided = "fails" if e_against >= 1 / report["alpha"] else "passes" if e_for >= 1 / report["beta"] else "undecided"
        beyond_it = any(way * (total - at) + 2.326 * errors[n] <= 0 for way, at in assertion.bounds)  # total time, one-sided at 1 %
        held_back = keeps is not None and decided != "undecided" and not (beyond_it if decided == "fails" else keeps)
        outcome = "undecided" if held_back else decided
        if outcome != "undecided": break
    return {"evidence_for": e_for, "evidence_against": e_against, "outcome": outcome, "total_ratio": math.nan if counts else math.exp(totals[-1]), "held_back_by_total": held_back}

def outliers_allowed(n):  # rounds of an assertion that is not randomised on its other side: one in six at most, and as unlikely by a coin as that five agree
    return max(k for k in range(n // 6 + 1) if k == 0 or sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= 1 / 32)
def of_processes(report):  # as if there were one process of every variant, the first of each, the second and so on: judge/judge_programs.cpp
    counts, memory = {}, {v["name"]: v["counts"] for v in report["variants"]}
    for own in (p["counts"] | {"variant": p["variant"], "host_waits": sum(p["counts"][name] for name in ("waits", "blocking_copies", "blocking_frees")), "device_syncs": p["counts"]["device_waits"]} for p in report["program"] if not p["problem"]):
        counts.setdefault(own["variant"], []).append(memory.get(own["variant"], {}) | {f"{name}_per_step": count for name, count in own.items()})
    return [report | {"program": None, "device": None, "variants": [{"name": name, "counts": own[min(n, len(own) - 1)]} for name, own in counts.items()]} for n in range(max(map(len, counts.values())))]
def recomputed(report, line, regime=()):  # what follows of a line in a regime of these outcomes
    assertion, measured, timed = Assertion(line["text"]), report["measurement"], line["evidence"] == "timed"
    if report["skipped_because"] or "stored." in line["text"]: return {"outcome": line["outcome"]}
    if report.get("program") and line["evidence"] == "exact":  # the worst of all processes; doubts about what was recorded at FILE's word
        return min((recomputed(one, line) for one in of_processes(report)), key=lambda own: ([*FROM_WORST].index(own["outcome"]), abs(own["left"] - own["right"]) * (1 if own["outcome"] == "passes" else -1))) if line["outcome"] != "undecided" else {"outcome": "undecided"}
    if line["evidence"] in ("plan", "exact"):  # counts, exact up to the rounding of fractions
        known = line["evidence"] == "plan" or not report["device"] or measured["traced_rounds"]
        left, right = assertion.values(report) if known else (math.nan, math.nan)
        gap, slack = left - right, 1e-9 * max(abs(left), abs(right)) + assertion.within * abs(right)
        true = {"<": gap < -slack, "<=": gap <= slack, ">": gap > slack, ">=": gap >= -slack}.get(assertion.relation, abs(gap) <= slack)
        return {"left": left, "right": right, "outcome": "undecided" if math.isnan(gap) else "passes" if true else "fails"}
    def log_ratio(*where):  # a side of nothing counts as very little
        least = 1e-12 if timed and assertion.metrics[0] not in ("host_share", "mfu", "slow_step_share") else 1e-9 if "_us" in assertion.metrics[0] else NOTHING.get(assertion.metrics[0], 1e-6)
        return operator.sub(*(math.log(max(side, least)) for side in assertion.values(report, *where)))
    given = line["timed"] or line["not_randomised"] or {"contrasts": [], "earlier_rounds": 0}
    rounds, earlier = measured["rounds" if timed else "traced_rounds"] or [], given["contrasts"][:given["earlier_rounds"]]
    contrasts, totals, errors = [log_ratio(here) for here in rounds], [math.nan for _ in earlier + rounds], [0.0 for _ in earlier + rounds]
    kept, counts = [given.get("earlier_times", [])[n:n + 3] for n in range(0, 3 * len(earlier), 3)], assertion.compares and assertion.metrics[0] in ("step_ms_p95", "step_ms_p99")
    if counts:
        contrasts, totals[len(earlier):] = tails(assertion, rounds)
        for n, (_, left, right) in enumerate(kept): totals[n] = math.log(left) - math.log(assertion.limit() * right)
    if assertion.compares and assertion.metrics[0] in ("step_ms_mean", "steps_per_s", "samples_per_s", "samples_per_s_per_rank", "tokens_per_s", "mfu"):
        before = [[{"variant": name, "steps": steps, "elapsed_ns": 1e9 * took} for name, took in zip(assertion.variants, sides)] for steps, *sides in kept]
        all_rounds = before + rounds
        totals = [log_ratio(sum(all_rounds[:n], []), True) for n in range(1, len(all_rounds) + 1)]
        errors = [error_of_ratio([[sum(s["elapsed_ns"] for s in here if s["variant"] == name) for name in assertion.variants] for here in all_rounds[:n]])
                  for n in range(1, len(all_rounds) + 1)]
        if measured["interleaved"]: contrasts = [log_ratio([*map(trimmed, here)]) for here in rounds]
    if assertion.compares and timed and not counts:
        slots = [[next(s["slot"] for s in here if s["variant"] == name) for name in assertion.variants] for here in rounds]
        contrasts = [contrast - added_by_slots(contrasts[:n], slots) for n, contrast in enumerate(contrasts)]
    inside = [assertion.keeps(contrast, assertion.relation in "<>") for contrast in earlier + contrasts]
    own = {"contrasts": earlier + contrasts, "outcome": "passes" if (most := 2 * sum(inside) > len(inside)) else "fails"}  # of an assertion that is not randomised, where nearly all rounds agree
    if not inside or math.isnan(sum(contrasts)): own = {"timed": None, "not_randomised": None, "outcome": "undecided"}
    elif assertion.compares: own |= compared(assertion, own["contrasts"], totals, errors, report, counts)
    elif len(inside) < 5 or inside.count(not most) > outliers_allowed(len(inside)): own["outcome"] = "undecided"
    own["in_doubt"] = line["in_doubt"] or bool("contrasts" in own and report["disturbance"] and not earlier)
    return own | ({"outcome": "skipped" if "fails" in regime else "undecided"} if {*regime} - {"passes"} or own["in_doubt"] else {})
def judged(report, before):
    regime = {line["name"]: recomputed(report, line) for line in report["regime"]}
    expect = {line["name"]: recomputed(report, line, {own["outcome"] for own in regime.values()}) for line in report["expect"]}
    alpha = report["suite_alpha"] * (0.9 if report["suite_lines"] > 1 else 1) / max(report["suite_lines"], 1)
    return {"scenario": report["scenario"], "failed": report.setdefault("failed"), "broken": report["broken"], "regime": regime, "expect": expect,
            "alpha": alpha, "suite_alpha": (before or [report])[0]["suite_alpha"], "outcome": min((own["outcome"] for own in expect.values()), key=[*FROM_WORST].index)} | ({"program": report["program"]} if "program" in report else {})
def suite_of(scenarios, alpha):  # judge/judge_suite.h
    lines = [[(f"{found['scenario']}.{name}", own["outcome"], 0 if own["in_doubt"] or own["held_back_by_total"] else own["evidence_against"])
              for name, own in found["expect"].items() if "evidence_against" in own and own["outcome"] != "skipped"]
             for found in scenarios if not found["broken"]]
    product, lines = math.prod((1 + st.fmean(e for *_, e in own)) / 2 for own in lines if own), sum(lines, [])
    mean, part = st.fmean([e for *_, e in lines] or [1]), 0.9 if len(lines) > 1 else 1
    threshold, together = 1 / (alpha * part), part * mean + (1 - part) * product
    among = [line for line, outcome, e in lines if outcome == "undecided" and e - threshold >= sum(max(threshold - x, 0) for *_, x in lines)]
    return {"alpha": alpha, "lines": len(lines), "mean_evidence": mean, "product_evidence": product, "evidence": together,
            "fails": len(lines) > 1 and together >= 1 / alpha, "failed_among_others": among}

def differences(where, given, found):
    if isinstance(found, dict):
        if isinstance(given, list): given = {line["name"]: line | (line["timed"] or line["not_randomised"] or {}) for line in given}
        return sum((differences(f"{where}: {key}", given[key], found[key]) for key in found), [])
    if isinstance(found, list) and isinstance(given, list) and len(given) == len(found):
        return sum((differences(f"{where} {n}", *pair) for n, pair in enumerate(zip(given, found), 1)), [])
    numbers, nearly = [type(of) in (int, float) for of in (given, found)] == [True, True], 1e-13 if "contrasts" in where else 0
    same = math.isclose(given, found, rel_tol=1e-9, abs_tol=nearly) if numbers else given == found or given is None and found != found
    return [] if same else [f"{where}: {given} in the file, {found} recomputed"]

def run_of(report, first):  # the same in every line; not gated where a simulated device stood in for the best there is, for which nobody asked
    simulated = report["device"]["kind"] == "simulated" if report.get("device") else first.get("simulated")
    return first | ({"simulated": simulated, "gated": not simulated or first["asked_for"] != ""} if "asked_for" in first else {})
place, wrong, scenarios, suite, run = 0, [], [], None, None
try:
    for place, text in enumerate(open(sys.argv[1], encoding="utf-8"), 1):
        report = json.loads(text)
        if report["schema"] != 4: raise ValueError(f"schema {report['schema']}, not 4")
        if "suite" in report: suite = suite_of(scenarios, scenarios[0]["suite_alpha"])
        else: scenarios.append(judged(report, scenarios))
        wrong += differences("suite", report["suite"], suite) if suite else differences(report["scenario"], report, scenarios[-1])
        wrong += differences("run", report["run"], run_of(report, run := run or report["run"]))
    if len(scenarios) != 1 and not suite or len(scenarios) != run.get("scenarios", len(scenarios)): raise ValueError("it ends before the suite")
except Exception as error:  # whatever it is, it is no difference
    print(f"{' '.join(sys.argv[1:])}:{place}: not the JSON of a run: {error!r}; write it anew: stepgate run ... --json", file=sys.stderr)
    sys.exit(2)
outcomes = [("program" if "program" in found else "device") + " failed" if found["failed"] else "broken" if found["broken"] else found["outcome"] for found in scenarios]
besides = [found["outcome"] for found in scenarios if found["outcome"] == "fails"] + ["not gated"] * (not report["run"].get("gated", True))
worst = min(outcomes + besides + ["fails"] * bool(suite and (suite["fails"] or suite["failed_among_others"])), key=[*FROM_WORST].index)
tally = ", ".join(f"{outcomes.count(outcome)} {OF_SEVERAL.get(outcome, outcome) if outcomes.count(outcome) > 1 else outcome}" for outcome in FROM_WORST if outcome in outcomes)
print(*wrong, f"{len(outcomes)} scenario{'s' * (len(outcomes) > 1)}: {tally}; exit code {FROM_WORST[worst]} unless --undecided says otherwise", sep="\n")
sys.exit(bool(wrong))
