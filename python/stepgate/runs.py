# SPDX-License-Identifier: MIT
"""The samples of one run, from the file that `stepgate run --json FILE` writes."""
import dataclasses
import typing

from .lines import RUN_SCHEMA, Refused, as_described, read_lines


@dataclasses.dataclass
class Segment:
    """Scored steps of one variant in one round."""
    variant: int  # index into Measured.variants
    first_step: int
    steps: int
    elapsed_ns: int
    host_busy_ns: typing.Optional[int]
    sm_clock_hz: typing.Optional[float]  # of all steps of the segment
    step_times_ns: list  # empty where single steps are not timed


@dataclasses.dataclass
class Measured:
    """A scenario that has rounds."""
    scenario: str
    device: str  # "simulated " stands before the name of one on which nothing was measured
    driver: str
    variants: list  # names
    batch_sizes: list  # samples a step, of each variant
    interleaved: bool  # its steps ran by turns
    rounds: list  # of lists of Segment, in the order in which they ran


def why_not_measured(report):
    """In words; None of a scenario with rounds."""
    if report["measurement"]["rounds"]:
        return None
    if report["skipped_because"]:
        return f"was skipped: {report['skipped_because']}"
    if report["failed"] is not None:
        return f"failed: {report['failed']}"
    if report["device"] is None:
        return "was decided by its plans alone"
    return "has no rounds in the file"


def measured_of(report):
    device, measurement = report["device"], report["measurement"]
    variants = [variant["name"] for variant in measurement["variants"]]

    def segment_of(segment):
        return Segment(variants.index(segment["variant"]),
                       *(segment[field.name] for field in dataclasses.fields(Segment) if field.name != "variant"))

    return Measured(scenario=report["scenario"],
                    device=("simulated " if device["kind"] == "simulated" else "") + device["name"],
                    driver=device["driver"],
                    variants=variants,
                    batch_sizes=[variant["batch_size"] for variant in measurement["variants"]],
                    interleaved=measurement["interleaved"],
                    rounds=[[segment_of(segment) for segment in segments] for segments in measurement["rounds"]])


def refuse_part_of_run(path, run, are_suite):
    """are_suite: whether each line is that of the suite, which stands behind the scenarios of a run of several."""
    scenarios = are_suite.count(False)
    with as_described(path):
        count = run.get("scenarios", scenarios if True in are_suite else None)
        if count is None:
            raise Refused(f"{path}: does not say how many scenarios its run has, so it may have been cut off; run it again with a newer stepgate")
        if scenarios != count or True in are_suite[:-1] or are_suite[-1] != (count > 1):
            raise Refused(f"{path}: has {scenarios} of the {count} scenarios of its run and {'a' if True in are_suite else 'no'} line of the suite, "
                          "which stands behind several: the run did not end, or the file was changed; run it again")


def read_run(path):
    """The scenarios of the run that have rounds, and of each other one its name and why it has none."""
    lines = read_lines(path, RUN_SCHEMA, "`stepgate run --json FILE`")
    run, measured, left_out = None, [], []
    for place, report in lines:
        with as_described(place):
            if run not in (None, report["run"]):
                raise Refused(f"{place}: is of another run than the line before; give each run a file of its own")
            run = report["run"]
            if "suite" in report:
                continue
            why = why_not_measured(report)
            if why is None:
                measured.append(measured_of(report))
            else:
                left_out.append((report["scenario"], why))
    refuse_part_of_run(path, run, ["suite" in report for _, report in lines])
    if not measured:
        raise Refused(f"{path}: no scenario has samples: " + "; ".join(f"'{name}' {why}" for name, why in left_out) +
                      "; run it where it is measured, and without STEPGATE_JSON_ROUNDS=none")
    return measured, left_out
