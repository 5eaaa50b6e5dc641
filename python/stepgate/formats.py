# SPDX-License-Identifier: MIT
"""The formats of an export: what each is for, and the function that makes it.

Such a function takes the scenarios of a run (runs.Measured) and the name of its file, and gives the bytes of each file that it is made
of, by name.
"""
import csv
import io
import json
import math
import os
import statistics
import struct

NANOSECONDS = 1e9  # a second


def csv_file(file, header, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # quotes as RFC 4180 has it, writes nothing for None
    writer.writerow(header)
    writer.writerows(rows)
    return {file: text.getvalue().encode()}


def segments_of(measured):
    """(scenario, number of the round, number of the segment in it, segment), in the order in which they ran."""
    for one in measured:
        for number, segments in enumerate(one.rounds):
            for place, segment in enumerate(segments):
                yield one, number, place, segment


def csv_segments(measured, file):
    return csv_file(file, ("device", "scenario", "variant", "batch_size", "round", "place", "first_step", "steps", "elapsed_ns", "host_busy_ns",
                           "sm_clock_hz"),
                    ((one.device, one.scenario, one.variants[segment.variant], one.batch_sizes[segment.variant], number, place,
                      segment.first_step, segment.steps, segment.elapsed_ns, segment.host_busy_ns, segment.sm_clock_hz)
                     for one, number, place, segment in segments_of(measured)))


def csv_steps(measured, file):
    def rows():
        for one, number, place, segment in segments_of(measured):
            for index, time in enumerate(segment.step_times_ns):
                # Which of the steps that ran by turns were scored is not in the JSON.
                step = None if one.interleaved else segment.first_step + 1 + index
                yield one.device, one.scenario, one.variants[segment.variant], number, place, step, time

    return csv_file(file, ("device", "scenario", "variant", "round", "place", "step", "time_ns"), rows())


def json_file(file, root):
    return {file: (json.dumps(root, indent=2, allow_nan=False) + "\n").encode()}


def google_benchmark(measured, file):
    """The fields of google/benchmark's JSON reporter that mean something here. Time unit ns; cpu_time is 0 where it is not known."""
    benchmarks = []
    for family, one in enumerate(measured):
        for index, (variant, batch_size) in enumerate(zip(one.variants, one.batch_sizes)):
            name = f"{one.scenario}/{variant}"
            for repetition, segments in enumerate(one.rounds):
                own = [segment for segment in segments if segment.variant == index]
                steps, elapsed = sum(segment.steps for segment in own), sum(segment.elapsed_ns for segment in own)
                benchmarks.append({"name": name,
                                   "family_index": family,
                                   "per_family_instance_index": index,
                                   "run_name": name,
                                   "run_type": "iteration",
                                   "repetitions": len(one.rounds),
                                   "repetition_index": repetition,
                                   "threads": 1,
                                   "iterations": steps,
                                   "real_time": elapsed / steps,
                                   "cpu_time": sum(segment.host_busy_ns or 0 for segment in own) / steps,
                                   "time_unit": "ns",
                                   **({} if batch_size is None else {"items_per_second": batch_size * steps * NANOSECONDS / elapsed})})
    names = sorted({one.device for one in measured})
    return json_file(file, {"context": {"executable": "stepgate", "library_build_type": "release", "device": ", ".join(names),
                                        "driver": measured[-1].driver},
                            "benchmarks": benchmarks})


def nvbench_samples(one, variant):
    """Seconds of every single step, or of every segment where steps are not timed, and as many frequencies, or none."""
    seconds, hertz = [], []
    for segments in one.rounds:
        for segment in segments:
            if segment.variant != variant:
                continue
            times = segment.step_times_ns or [segment.elapsed_ns / segment.steps]
            seconds += [time / NANOSECONDS for time in times]
            hertz += [segment.sm_clock_hz] * len(times)
    return seconds, [] if None in hertz else hertz


def nvbench_named(name, kind, value):
    return {"name": name, "type": kind, "value": str(value)}


def nvbench_summary(tag, name, hint, *data):
    return {"tag": tag, "name": name, "hint": hint, "data": list(data)}


def nvbench_time_summaries(seconds):
    seconds = sorted(seconds)
    mean = math.fsum(seconds) / len(seconds)
    deviation = statistics.stdev(seconds) if len(seconds) > 1 else 0.0
    # NVBench's percentiles are the nearest rank, halves rounded up.
    q1, median, q3 = (seconds[(percent * (len(seconds) - 1) + 50) // 100] for percent in (25, 50, 75))
    yield nvbench_summary("nv/cold/sample_size", "Samples", "sample_size", nvbench_named("value", "int64", len(seconds)))
    for tag, name, hint, value in (("min", "Min GPU Time", "duration", seconds[0]),
                                   ("max", "Max GPU Time", "duration", seconds[-1]),
                                   ("mean", "GPU Time", "duration", mean),
                                   ("stdev/absolute", "Std GPU Time", "duration", deviation),
                                   ("stdev/relative", "Noise", "percentage", deviation / mean),
                                   ("q1", "Q1 GPU Time", "duration", q1),
                                   ("median", "Median GPU Time", "duration", median),
                                   ("q3", "Q3 GPU Time", "duration", q3),
                                   ("iqr/absolute", "IQR GPU Time", "duration", q3 - q1),
                                   ("iqr/relative", "IQR/Median", "percentage", (q3 - q1) / median)):
        yield nvbench_summary("nv/cold/time/gpu/" + tag, name, hint, nvbench_named("value", "float64", value))


def nvbench(measured, file):
    """NVBench's JSON of version 1.0.0, whose values are typed strings under tags. Samples lie as little-endian 32-bit floats in <file>-bin
    and <file>-freqs-bin, named relative to the JSON, so that all may be moved together."""
    files, benchmarks, states_written = {}, [], 0
    devices = sorted({one.device for one in measured})

    def samples(tag, suffix, values):
        name = f"{os.path.basename(file)}{suffix}/{states_written}.bin"
        files[os.path.join(os.path.dirname(file), name)] = struct.pack(f"<{len(values)}f", *values)
        return nvbench_summary(tag, "Samples", "file/sample_times", nvbench_named("filename", "string", name),
                               nvbench_named("size", "int64", len(values)))

    for one in measured:
        device, states = devices.index(one.device), []
        for index, variant in enumerate(one.variants):
            seconds, hertz = nvbench_samples(one, index)
            summaries = [*nvbench_time_summaries(seconds), samples("nv/json/bin:nv/cold/sample_times", "-bin", seconds)]
            if hertz:
                summaries.append(nvbench_summary("nv/cold/sm_clock_rate/mean", "Clock Rate", "frequency",
                                                 nvbench_named("value", "float64", math.fsum(hertz) / len(hertz))))
                summaries.append(samples("nv/json/freqs-bin:nv/cold/sample_freqs", "-freqs-bin", hertz))
            states_written += 1
            states.append({"name": f"Device={device} Variant={variant}",
                           "description": f"Variant={variant}",
                           "device": device,
                           "axis_values": [nvbench_named("Variant", "string", variant)],
                           "summaries": summaries,
                           "is_skipped": False})
        values = [{"input_string": variant, "description": "", "value": variant} for variant in one.variants]
        benchmarks.append({"name": one.scenario,
                           "index": len(benchmarks),
                           "devices": [device],
                           "axes": [{"name": "Variant", "type": "string", "flags": "", "values": values}],
                           "states": states})
    version = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}
    return {**files, **json_file(file, {"meta": {"argv": ["stepgate"], "version": {"json": version}},
                                        "devices": [{"id": index, "name": name} for index, name in enumerate(devices)],
                                        "benchmarks": benchmarks})}


FORMATS = {"google-benchmark": google_benchmark, "nvbench": nvbench, "csv": csv_segments, "csv-steps": csv_steps}
