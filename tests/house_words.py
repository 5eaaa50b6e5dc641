# SPDX-License-Identifier: MIT
# house_words.py REPOSITORY FOLDER: what the field has a word for is called by it (docs/glossary.md). Finds identifiers and prose that
# say it in words that were replaced; planted ones are found. Formats that are stored keep their words, and so do names in scenarios.
import pathlib
import re
import sys

SOURCE, PLACE = map(pathlib.Path, sys.argv[1:])
FOLDERS = ["ci", "cmake", "docs", "kernels", "python", "runner", "scenarios", "tests"]
SUFFIXES = {".cpp", ".h", ".cu", ".cuh", ".toml", ".md", ".txt", ".py", ".cmake", ".yml", ".expected", ""}
KEPT = re.compile(r"/recorded/|/house_words\.py$|/baselines/")

# Where a product is a GEMM, and not that of two numbers or of an assertion's factors.
GEMMS = r"^(kernels/(matmul|linear)/|runner/plan/|runner/device/(cuda|simulated)/|scenarios/[a-z_]+\.toml)"

# Words, what to write instead, where (all files without), and where a line may still say them.
WORDS = [
    (r"\bH2dKnobs\b|\[h2d\]|\bh2d\.(host|stream|blocking|buffers|device_buffer|advise)\b", "[transfer]", None, None),
    (r"[a-z_]*(?<!repeated_)(?<!matrix )(?<!dot )\bproducts?\b(?!_ns)", "GEMM", GEMMS,
     r"elementwise_test|fill_on_device|transformer_shape_test"),
    (r"\b(Measured)?Products?(Call|Shape|Operands)?\b(?= \w+[;,{(])|\bAlgorithmsBy\b|\blaunch\.products\b|_product\b", "GEMM", r"^(kernels|runner)/",
     r"assertions/|verdict/sides|fingerprint|stats/"),
    (r"[Gg]rowable[ _]?[Ss]egment|SegmentKind::growable|\bdrop_growable|\bgrowables_", "expandable segment", None, None),
    (r"[Pp]age[-_ ]?[Ll]ock(?!_ns_per_mib)|Page[Uu]nlock", "pinned, register", None, r"offload_(activations|optimizer)\.toml"),
    (r"\bis_narrow\b|narrow_from_double|\bd_(narrow|wide)\b|Blocks::(widen|narrow)\b", "16-bit, d_hidden, d_mlp, mlp_up, mlp_down", None, None),
    (r"\bPassingBuffers\b|\b(is|add)_passing\b|\bpassing_\b", "temporary", None, None),
    (r"\bhand_overs?\b|\bHandOvers?\b|\bhanded_(over|back)_at\b", "stream handoff", None, None),
    (r"[Pp]rolong", "extend (live ranges)", None, None),
    (r"AllocatorCourse|allocator_course|(?<![Oo]f )\bcourse\b|\bcourse_\b", "allocator simulation", None, None),
    (r"[Mm]odelled[ _]?([Mm]emory|device)", "simulated", None, None),
    (r"[Gg]uardian|\blifeline|\blast[ _]words", "supervisor, parent-death pipe, tail of standard error", None, None),
    (r"\brun_ahead_steps\b|\bhold_back\b|\bbound_run_ahead\b", "steps_in_flight, throttle", None, None),
    (r"\bfurthest_ahead", "prefetch_depth", None, None),
    (r"\bBookkeeping\b|[>.]bookkeeping\b", "StepTelemetry, telemetry", r"^runner/|^tests/", None),
    (r"\bused_on\b|\b(Pooled)?Gauge\b", "record_stream, MemoryStat", None, None),
    (r"\bTimeSplit\b|\btime_split\b", "time breakdown", None, None),
    (r"\bLiveBecause\b|\bwithout_dnn\b|\bKeptMemory\b", "liveness reason, cudnn_unavailable_reason, persistent memory", None, None),
    (r"(?<!one )(?<!One )(?<!One)(?<!a )(?<!A)(?<!any )\b[Ss]entences?\b(?! (with|of a lost|goes))|[a-z_]sentence|(?<!One)Sentence[A-Z]", "assertion", None,
     r"library_notes|error_texts"),
    (r"\b[Rr]efuted\b|Outcome::(holds|refuted)|\"(holds|refuted)\"", "passes, fails", None, r"docs/claims\.md|reported_figure|claims_test|scenarios/README\.md|verdict/words|run_reader\.cpp|gate_records_test"),
    (r"[Dd]uel", "comparison", None, None),
    (r"\b[Ss]ittings?\b|\b[Ee]ras?\b|new_era|\b[Dd]ealt\b|\bcoin deals", "session, baseline reset, randomised", None, None),
    (r"^\s*// ---", "no banner: a file of its own", r"\.(h|cpp|cu|cuh)$", None),
    (r"^\s*(//|#) (Of|Whose|What|Those|Who)\b", "a sentence with a subject and a verb", r"\.(h|cpp|cu|cuh|py|cmake|txt)$", None),
    (r"std::o?stringstream", "TextStream, which throws where memory runs out", r"^runner/(?!.*(_test\.|/testing/|text_stream\.h)).*\.(cpp|h)$", None),
    (r"//.*[a-z]'s\.$", "a verb (who does or has what)", r"\.(h|cpp|cu|cuh)$", None),
    (r"\bScripted[A-Z]|\bscripted_[a-z]|\bscripted (device|worker|trace)|[Pp]layed_?(nvml|cudnn|gpu|Nvml)|\bPLAYED_", "fake", None, None),
]


def found_in(files, root):
    found = []
    for file in files:
        name = file.relative_to(root).as_posix()
        if KEPT.search("/" + name):
            continue
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        for words, instead, where, allowed in ROWS:
            if where and not where.search(name) or allowed and allowed.search(name):
                continue
            if words.search(name):
                found.append(f"{name}: its name; the field says: {instead}")
            for number, line in enumerate(lines, 1):
                if words.search(line):
                    found.append(f"{name}:{number}: {line.strip()[:120]}; the field says: {instead}")
    return found


ROWS = [(re.compile(words), instead, where and re.compile(where), allowed and re.compile(allowed)) for words, instead, where, allowed in WORDS]
files = [file for folder in FOLDERS for file in sorted((SOURCE / folder).rglob("*")) if file.is_file() and file.suffix in SUFFIXES]
failures = found_in([*files, SOURCE / "README.md"], SOURCE)

# One line of every row, of which each must be found.
PLANTED = {
    "runner/a.cpp": ["knobs.h2d.host = pinned;", "ProductCall call;", "SegmentKind::growable", "PageLock{host}", "is_narrow(dtype)", "is_passing(buffer)",
                     "handed_over_at(plan, 3)", "prolong_lifetimes(plan)", "plan.course->steps", "ModelledMemory memory;", "guardian_ = fork();",
                     "plan.run_ahead_steps", "furthest_ahead(plan)", "Bookkeeping kept;", "ScriptedDevice device;", "allocator.used_on(block, 2);", "Gauge all;", "TimeSplit time;",
                     "LiveBecause because;", "std::string without_dnn;", "KeptMemory kept;", "// Of those that are loaded.", "  // What a round costs.",
                     "// Files are measure.cpp's.", "const Sentence sentence = sentence_of(line);", "// The sentences of a scenario.", "Outcome::refuted", "line is refuted",
                     "DuelVerdict verdict;", "StoredUnit::sitting", "run.new_era", "// The slots are dealt anew.", "// --- reading ---",
                     "std::ostringstream page;"],
    "runner/plan/b.h": ["// The products of a layer.", "int product = 0;"],
    "docs/c.md": ["a batch that is page-locked", "growable segments", "its last words", "a scripted device"],
}
for name, lines in PLANTED.items():
    file = PLACE / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    seen = found_in([file], PLACE)
    failures += [f"planted in {name} and not found: {line}" for number, line in enumerate(lines, 1)
                 if not any(one.startswith(f"{name}:{number}:") for one in seen)]

print("\n".join(failures))
sys.exit(1 if failures else 0)
