# SPDX-License-Identifier: MIT
"""The figures of baselines/nvidia-h200/gate/README.md are those of the gates recorded beside it."""
import json
import pathlib
import re
import statistics
import sys

SOURCE = pathlib.Path(sys.argv[1])
RECORDS = SOURCE / "baselines/nvidia-h200/gate"
# In the order of the table.
PLANTED = ["products", "memory", "launches", "copies", "wait", "pageable", "allocation", "host", "twice"]


def works(name):
    lines = (RECORDS / f"2026-11-23.{name}.jsonl").read_text().splitlines()
    return {line["work"]: line for line in map(json.loads, lines) if line["kind"] == "work"}


def findings(name):
    lines = (RECORDS / f"2026-11-23.{name}.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["kind"] == "finding"]


def spread(work):
    """Of the contrasts of pairs of launches, in percent."""
    return 100 * statistics.stdev(work["timed"]["contrasts"])


def is_rounded(written, value):
    """Whether the figure is the value to the digits that it has."""
    digits = len(written.split(".")[1]) if "." in written else 0
    return abs(float(written) - value) <= 0.5 * 10**-digits + 1e-9


def wrong_rows(page):
    rows = re.findall(r"^\| .* \| \+([\d.]+) % \[([\d.]+), ([\d.]+)\], (\d+)[a-z ]* \| (.*) \|$", page, re.M)
    if len(rows) != len(PLANTED):
        return [f"{len(rows)} rows of planted slowdowns, {len(PLANTED)} records"]
    wrong = []
    for row, name in zip(rows, PLANTED):
        (work,) = works("planted_" + name).values()
        values = [work["timed"]["ratio"], *work["timed"]["interval"]]
        fits = all(is_rounded(text, 100 * (value - 1)) for text, value in zip(row, values))
        found = findings("planted_" + name)
        mechanism, *counts = row[4].split("; ")
        of_time = [finding["mechanism"] for finding in found if finding["of"] == "time"]
        named = of_time[0] == mechanism + " of a traced step"
        if not named or any(not any(finding["words"].startswith(count) for finding in found) for count in counts):
            wrong.append(f"{name}: the page says {row[4]}, the record {of_time} and {[finding['words'] for finding in found]}")
        if not fits or int(row[3]) != work["pairs"] or work["outcome"] != "refuted":
            wrong.append(f"{name}: the page says {row}, the record {values} over {work['pairs']} pairs")
    return wrong


def missing(page, words):
    return [] if words in " ".join(page.split()) else [f"the page does not say: {words}"]


def wrong_counts(page):
    suite = works("suite").values()
    between = lambda low, high: sum(low <= spread(work) < high for work in suite)
    pairs = [work["pairs"] for work in suite]
    fewest = min(pairs)
    own = [work for work in suite if work["margin"] > 0.02]
    wild = [work for work in suite if spread(work) >= 4]
    found = missing(page, f"{len(suite)} works timed in 197 s, {pairs.count(fewest)} of them in the fewest pairs, {fewest}, the last in {max(pairs)};")
    found += missing(page, f"Of these {len(suite)} works, the contrasts of {between(0, 1)} scatter by less than 1 % from pair to pair, of "
                           f"{between(1, 4)} by 1 to 4 %, of {len(wild)} by more, all of which have a margin of their own.")
    found += missing(page, f"{len(own)} of the {len(suite)} works of the suite have one.")
    if any(work["outcome"] != "holds" for work in suite) or any(work not in own for work in wild):
        found.append("the suite's record has works that do not hold, or scatter without a margin of their own")
    return found


def wrong_identical(page):
    gates = [json.loads(line) for line in (RECORDS / "2026-11-23.identical.jsonl").read_text().splitlines()]
    whole = sum(gate["gated"] == "scenarios" for gate in gates)
    short = [gate for gate in gates if gate["commit"].startswith("75fe75f2") and gate["gated"] == "smoke"]
    undecided = [gate["undecided"] for gate in short]
    found = missing(page, f"{len(gates)} gates, {whole} of the whole suite and {len(gates) - whole} of the tag `smoke`, "
                          f"{sum(gate['works'] for gate in gates)} comparisons of works: none slower, no count that differs.")
    found += missing(page, f"left {min(undecided)} to {max(undecided)} of its {short[0]['works']} works undecided")
    if any(gate["refuted"] or gate["differing_counts"] or gate["exit_code"] not in (0, 77) for gate in gates):
        found.append("an identical build was blocked")
    return found


def wrong_spreads(page):
    before, after = works("smoke_any_processor"), works("smoke_one_processor")
    text = " ".join(page.split())
    wrong = []
    for name, pattern in (("graph_launch/baseline", r"scatter by ([\d.]+) % instead of ([\d.]+) \(`graph_launch/baseline`\)"),
                          ("sync_every_step/fix", r"by ([\d.]+) instead of ([\d.]+) \(`sync_every_step/fix`\)")):
        found = re.search(pattern, text)
        if not found or not (is_rounded(found[1], spread(after[name])) and is_rounded(found[2], spread(before[name]))):
            wrong.append(f"{name}: {spread(after[name]):.2f} % on one processor, {spread(before[name]):.2f} % on any")
    return wrong


def wrong_processes(page):
    times = json.loads((RECORDS / "2026-11-23.processes.json").read_text()).values()
    spreads = [100 * statistics.stdev(of_work) / statistics.mean(of_work) for of_work in times]
    found = missing(page, f"differed there by {min(spreads):.0f} to {max(spreads):.0f} % (standard deviation, six works)")
    return found if len(spreads) == 6 else [*found, "there are not six works"]


def wrong_stored(page):
    open_times = findings("stored")
    launches = sum("anchor launch.1" in finding["words"] for finding in open_times)
    found = missing(page, f"{len(open_times)} of 97 were undecided (77), {launches} of them because launches limit them")
    if any(finding["of"] != "time" or finding["severity"] != "undecided" for finding in open_times):
        found.append("the gate against stored runs found more than undecided times")
    return found


def faults(page):
    return wrong_stored(page) + wrong_rows(page) + wrong_counts(page) + wrong_identical(page) + wrong_spreads(page) + wrong_processes(page)


def main():
    page = (RECORDS / "README.md").read_text()
    found = faults(page)
    # Each figure changed in its last digit is found.
    for figure, changed in (("+7.1 %", "+7.2 %"), ("[21, 28], 7", "[21, 28], 8"),
                            ("-> 179.5 us", "-> 179.6 us"), ("pageable_copies_per_step 0 -> 1", "pageable_copies_per_step 0 -> 2"), ("of 54 scatter", "of 55 scatter"),
                            ("596 comparisons", "597 comparisons"), ("left 2 to 7", "left 3 to 7"), ("the last in 55", "the last in 54"),
                            ("66 of 97", "65 of 97"), ("by 1.3 % instead", "by 1.4 % instead"), ("by 1 to 12 %", "by 2 to 12 %")):
        if figure not in page or not faults(page.replace(figure, changed, 1)):
            found.append(f"'{changed}' instead of '{figure}' is not found")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
