#!/usr/bin/env python3
"""Recomputes every verdict of `stepgate run --json FILE` from its segments, counts and traced values:
contrasts, e-values, outcomes and the suite. Says each difference; exit code 1 where there is one."""
import json
import math
import re
import statistics
import sys

MULTIPLIERS, WEIGHTS, STAKE = (0.25, 0.5, 1.0, 2.0), (0.1, 0.2, 0.3, 0.4), 0.95
UNITS = {"%": 0.01, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 2**10, "MiB": 2**20,
         "GiB": 2**30, "GB/s": 1e9, "B/step": 1, "KiB/step": 2**10, "MiB/step": 2**20, "GiB/step": 2**30}
NOTHING = {"exposed_copy_us": 1e-9, "host_blocked_us": 1e-9, "migrated_bytes_per_step": 1e-3,
           "h2d_gbps": 1e-12, "kernel_gbps": 1e-12}  # of other traced metrics a millionth
RELATION = re.compile(r"(.+?)\s*(<=|>=|==|~=|<|>)\s*(.+?)(?:\s+within\s+([\d.eE+-]+)\s*%)?$")


def parse_side(text):  # a sum of products of factors: numbers, ("variant", "metric") or a size
    def factor(word):
        number = re.fullmatch(r"([\d.]+(?:[eE][+-]?\d+)?)\s*(\S*)", word)
        if number:
            return float(number[1]) * UNITS.get(number[2], 1)
        return tuple(word.rsplit(".", 1)) if "." in word else word
    return [[factor(word.strip()) for word in product.split(" * ")] for product in text.split(" + ")]


def only_metric(side):
    metrics = [factor for factor in side[0] if isinstance(factor, tuple)]
    sizes = [factor for factor in side[0] if isinstance(factor, str)]
    return metrics[0] if len(side) == 1 and len(metrics) == 1 and not sizes else None


class Sentence:
    def __init__(self, text):
        left, self.relation, right, within = RELATION.match(text).groups()
        self.left, self.right = parse_side(left), parse_side(right)
        self.within = float(within) / 100 if within else 0
        one, other = only_metric(self.left), only_metric(self.right)
        self.compares = bool(one and other) and one[1] == other[1] and one[0] != other[0]
        self.bounds = []  # (direction, margin) of log(left / right): +1 above, -1 below
        if self.relation not in ("<", "<="):
            self.bounds.append((1, math.log(max(1 - self.within, 1e-9))))
        if self.relation not in (">", ">="):
            self.bounds.append((-1, math.log1p(self.within)))

    def value(self, side, metric_of, sizes):
        parts = {float: float, tuple: metric_of, str: sizes.__getitem__}
        return sum(math.prod(parts[type(f)](f) for f in product) for product in side)

    def inside(self, contrast, strict):
        return all(d * (contrast - m) > 0 or (not strict and contrast == m) for d, m in self.bounds)


def scale_of(contrasts):  # predictable: of earlier contrasts only
    if len(contrasts) < 2:
        return 0.005
    centre = statistics.median(contrasts)
    middle = sorted(abs(c - centre) for c in contrasts)[len(contrasts) // 2]
    weight = len(contrasts) - 1
    return max((0.005 + weight * 1.4826 * middle) / (1 + weight), 1e-4)


def predicted_by_slots(seen, left, right, slots):  # ridge regression, as in stats/place_effects.h
    if len(seen) < 2:
        return 0.0
    contrasts = [contrast for contrast, _, _ in seen]
    centre, reach = statistics.median(contrasts), 3 * scale_of(contrasts)
    size = slots + 1
    matrix = [[2.0 if r == c and r < slots else 0.0 for c in range(size)] for r in range(size)]
    vector = [0.0] * size
    for contrast, i, j in seen:
        terms = ((i, 1.0), (j, -1.0), (slots, 1.0))
        for row, of_row in terms:
            vector[row] += of_row * min(max(contrast - centre, -reach), reach)
            for column, of_column in terms:
                matrix[row][column] += of_row * of_column
    for pivot in range(size):
        for row in range(pivot + 1, size):
            factor = matrix[row][pivot] / matrix[pivot][pivot]
            matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[pivot])]
            vector[row] -= factor * vector[pivot]
    for row in reversed(range(size)):
        known = sum(matrix[row][c] * vector[c] for c in range(row + 1, size))
        vector[row] = (vector[row] - known) / matrix[row][row]
    return vector[left] - vector[right]


def decide_comparison(sentence, contrasts, totals, alpha, beta):
    against = [[1.0] * 4 for _ in sentence.bounds]
    favour = [[1.0] * 4 for _ in sentence.bounds]
    most = [1.0] * len(sentence.bounds)
    e_against = 1.0
    mean = lambda parts: sum(w * p for w, p in zip(WEIGHTS, parts))
    for n, contrast in enumerate(contrasts):
        scale = scale_of(contrasts[:n])
        for index, (direction, margin) in enumerate(sentence.bounds):
            for k, multiplier in enumerate(MULTIPLIERS):
                bet = STAKE * math.tanh(multiplier * direction * (contrast - margin) / scale)
                favour[index][k] *= 1 + bet
                against[index][k] *= 1 - bet
            most[index] = max(most[index], mean(favour[index]))
        e_against = sum(map(mean, against)) / len(against)
        if e_against >= 1 / alpha:
            return "refuted", min(most), e_against
        if min(most) >= 1 / beta and (totals[n] is None or sentence.inside(totals[n], True)):
            return "holds", min(most), e_against
    return "undecided", min(most), e_against


def of_segments(segments, name, metric, batch):
    own = [segment for segment in segments if segment["variant"] == name]
    steps, elapsed = sum(s["steps"] for s in own), sum(s["elapsed_ns"] for s in own) * 1e-9
    typical = math.exp(sum(math.log(s["elapsed_ns"] * 1e-9 / s["steps"]) for s in own) / len(own))
    if metric in ("step_ms_mean", "samples_per_s"):
        return typical if metric == "step_ms_mean" else batch / typical
    if metric in ("host_us", "host_share"):
        return sum(s["host_busy_ns"] for s in own) * 1e-9 / (steps if metric == "host_us" else elapsed)
    times = sorted(time for s in own for time in s["step_times_ns"])
    return times[math.ceil(float(metric[-2:]) / 100 * len(times) - 1e-9) - 1] * 1e-9


def recompute(report, line):  # outcome, evidence against, contrasts
    sentence, measured = Sentence(line["text"]), report["measurement"]
    traced = measured["traced_rounds"] or []
    sizes = {"batch_bytes": report["batch_bytes"], "param_bytes": report["param_bytes"]}
    counts = {v["name"]: v["counts"] for v in report["variants"]}
    if line["evidence"] in ("plan", "exact"):
        def count(of):
            exact = line["evidence"] == "exact" and traced and traced[0][of[0]]["values"].get(of[1])
            return counts[of[0]][of[1]] if exact in (None, False, []) else exact
        left, right = (sentence.value(s, count, sizes) for s in (sentence.left, sentence.right))
        slack = 1e-9 * max(abs(left), abs(right))
        holds = {"<": left < right - slack, "<=": left <= right + slack, ">": left > right + slack,
                 ">=": left >= right - slack, "==": abs(left - right) <= slack,
                 "~=": abs(left - right) <= sentence.within * abs(right) + slack}
        return "holds" if holds[sentence.relation] else "refuted", None, []
    given = line["timed"] or line["level"] or {"contrasts": [], "earlier_rounds": 0}
    contrasts = given["contrasts"][:given["earlier_rounds"]]
    totals, seen, total = [None] * len(contrasts), [], {}
    names = [variant["name"] for variant in measured["variants"]]
    batch = {variant["name"]: variant["batch_size"] for variant in measured["variants"]}
    for here in traced if line["evidence"] == "traced" else measured["rounds"]:
        if line["evidence"] == "traced":
            metric_of, least = lambda of: here[of[0]]["values"][of[1]], lambda of: NOTHING.get(of, 1e-6)
        else:
            metric_of, least = lambda of: of_segments(here, of[0], of[1], batch[of[0]]), lambda of: 1e-12
        first = next(f for p in sentence.left + sentence.right for f in p if isinstance(f, tuple))
        sides = [max(sentence.value(s, metric_of, sizes), least(first[1])) for s in (sentence.left, sentence.right)]
        contrast, in_total = math.log(sides[0]) - math.log(sides[1]), None
        if sentence.compares and line["evidence"] == "timed":
            slots = [next(s["slot"] for s in here if s["variant"] == only_metric(side)[0]) for side in (sentence.left, sentence.right)]
            raw, contrast = contrast, contrast - predicted_by_slots(seen, *slots, len(names))
            seen.append((raw, *slots))
            for segment in here:
                sums = total.setdefault(segment["variant"], {"variant": segment["variant"], "steps": 0, "elapsed_ns": 0})
                sums["steps"] += segment["steps"]
                sums["elapsed_ns"] += segment["elapsed_ns"]
            if first[1] in ("step_ms_mean", "samples_per_s"):
                of_total = lambda of: of_segments(total.values(), of[0], of[1], batch[of[0]])
                in_total = math.log(sentence.value(sentence.left, of_total, sizes) / sentence.value(sentence.right, of_total, sizes))
        contrasts.append(contrast)
        totals.append(in_total)
    if sentence.compares:
        outcome, _, against = decide_comparison(sentence, contrasts, totals, report["alpha"], report["beta"])
        return outcome, against, contrasts
    inside = [sentence.inside(c, sentence.relation in "<>") for c in contrasts]
    decided = len(inside) >= 5 and len(set(inside)) == 1
    return ("holds" if inside[0] else "refuted") if decided else "undecided", None, contrasts


def main():
    differences, lines, suite = [], 0, []
    for report in map(json.loads, open(sys.argv[1], encoding="utf-8")):
        if "suite" in report:
            check_suite(report["suite"], suite, differences)
            continue
        evidence = []
        regime = {recompute(report, line)[0] for line in report["regime"]}
        for line in report["regime"] + report["expect"]:
            where = f"{report['scenario']}.{line['name']}"
            if line["outcome"] in ("skipped", "no baseline", "not comparable") or line["stored"]:
                continue
            lines += 1
            unknown = line["left"] is None or line["right"] is None
            outcome, against, contrasts = ("undecided", None, []) if unknown else recompute(report, line)
            outside = line in report["expect"] and line["evidence"] in ("timed", "traced") and regime - {"holds"}
            if line["in_doubt"] or outside or (not report["measurement"]["traced_rounds"] and line["evidence"] == "exact"):
                outcome = "undecided"
            if outcome != line["outcome"]:
                differences.append(f"{where}: {line['outcome']} in the report, {outcome} recomputed")
            given = line["timed"] or line["level"]
            if given and any(abs(a - b) > 1e-9 for a, b in zip(given["contrasts"], contrasts, strict=True)):
                differences.append(f"{where}: other contrasts")
            if line["timed"]:
                if abs(against / line["timed"]["evidence_against"] - 1) > 1e-6:
                    differences.append(f"{where}: evidence {line['timed']['evidence_against']}, {against} recomputed")
                if line in report["expect"]:
                    evidence.append((where, line["outcome"], 0.0 if line["in_doubt"] else against))
        if not report["broken"]:
            suite.append(evidence)
    print("\n".join(differences) or f"{lines} sentences and the suite: the same verdicts")
    return 1 if differences or lines == 0 else 0


def check_suite(given, scenarios, differences):
    values = [value for evidence in scenarios for _, _, value in evidence]
    weight = 0.9 if len(values) > 1 else 1.0
    product = math.prod((1 + statistics.fmean(v for _, _, v in e)) / 2 for e in scenarios if e)
    together = weight * statistics.fmean(values or [1.0]) + (1 - weight) * product
    threshold = 1 / (given["alpha"] * weight)
    lacking = sum(max(threshold - value, 0) for value in values)
    among = [where for e in scenarios for where, outcome, value in e
             if value - threshold >= lacking and outcome == "undecided"]
    if abs(together / given["evidence"] - 1) > 1e-6 or given["refuted"] != (len(values) > 1 and together >= 1 / given["alpha"]):
        differences.append(f"suite: evidence {given['evidence']}, {together} recomputed")
    if among != given["refuted_among_others"]:
        differences.append(f"suite: {given['refuted_among_others']} refuted among others, {among} recomputed")


if __name__ == "__main__":
    sys.exit(main())
