# SPDX-License-Identifier: MIT
"""What a step's allocator does, as torch.cuda.memory._dump_snapshot writes it: for pytorch.org/memory_viz and torch.cuda._memory_viz."""
import os
import pickle

from .lines import MEMORY_SCHEMA, Refused, as_described, read_lines

PROTOCOL = 4  # the newest that pytorch.org/memory_viz reads
ACTIONS = {"take_segment": "segment_alloc", "give_back_segment": "segment_free", "allocate": "alloc", "release": "free_requested", "refuse": "oom"}
STATES = {"live": "active_allocated", "pending": "active_pending_free", "free": "inactive"}


def frames_of(memory, event):
    """The buffer of an event, the operation that acted on it, and its step, as if they were the frames of a stack."""
    if event is None or event["buffer"] < 0:
        return []
    where = f"{memory['scenario']}, {memory['variant']}"
    frames = [(memory["buffers"][event["buffer"]], "buffer")]
    if event["operation"] < 0:
        frames.append(("before the first step", where))
    else:
        operation = memory["operations"][event["operation"]]
        frames += [(operation["name"], operation["phase"]), (f"step {event['step']}", where)]
    return [{"name": name, "filename": file, "line": 0} for name, file in frames]


def trace_of(memory):
    """Events have their number as time, since a plan has none. PyTorch has two events for each release."""
    for number, event in enumerate(memory["events"]):
        action = ACTIONS[event["action"]]
        where = {"device_free": event["free_bytes"]} if action == "oom" else {"addr": event["address"]}
        for later, name in enumerate((action, "free_completed") if action == "free_requested" else (action,)):
            yield {"action": name, **where, "size": event["bytes"], "stream": event["stream"], "time_us": 2 * number + later,
                   "frames": frames_of(memory, event)}


def segment_of(memory, segment, owners):
    """owners: the last allocation at each address."""
    blocks = segment["blocks"]

    def frames_of_block(block):
        return frames_of(memory, owners.get(block["address"]) if block["use"] != "free" else None)

    return {"device": 0,
            "address": segment["address"],
            "total_size": segment["bytes"],
            "allocated_size": sum(block["bytes"] for block in blocks if block["use"] == "live"),
            "active_size": sum(block["bytes"] for block in blocks if block["use"] != "free"),
            "requested_size": sum(block["requested_bytes"] for block in blocks),
            "stream": segment["stream"],
            "segment_type": segment["pool"],
            "segment_pool_id": (0, segment["capture_pool"] or 0),
            "is_expandable": segment["kind"] == "expandable",
            "frames": [],
            "blocks": [{"address": block["address"], "size": block["bytes"], "requested_size": block["requested_bytes"],
                        "state": STATES[block["use"]], "frames": frames_of_block(block)} for block in blocks]}


def snapshot_of(memory):
    owners = {event["address"]: event for event in memory["events"] if event["action"] == "allocate"}
    return {"segments": [segment_of(memory, segment, owners) for segment in memory["segments"]],
            "device_traces": [list(trace_of(memory))],  # a list for each device
            "allocator_settings": {},
            "external_annotations": []}


def part_of_file_name(name, place):
    """The name of a scenario or variant as it is; refuses one that cannot be part of a file's name."""
    if not isinstance(name, str) or any(letter in "/\0" or "\ud800" <= letter <= "\udfff" for letter in name):
        raise Refused(f"{place}: {ascii(name)} names a scenario or variant and cannot be part of a file's name; name it anew and plan it again")
    return name


def memory_snapshots(path, file):
    """The bytes of a pickle for each variant of the file at path, by name: "m.pickle" becomes "m.<scenario>.<variant>.pickle"."""
    stem, extension = os.path.splitext(file)
    stem = stem if extension == ".pickle" else file
    files = {}
    for place, memory in read_lines(path, MEMORY_SCHEMA, "`stepgate plan --memory --json FILE`"):
        with as_described(place):
            name = ".".join((stem, *(part_of_file_name(memory[of], place) for of in ("scenario", "variant")), "pickle"))
            if name in files:
                raise Refused(f"{place}: {name} would be written twice, for this line and one before it; plan scenarios and variants once each, "
                              "under names that differ")
            files[name] = pickle.dumps(snapshot_of(memory), PROTOCOL)
    return files
