# SPDX-License-Identifier: MIT
"""A worker that behaves until a chosen request and then does what its first argument says.

    hostile.py TRICK [REQUEST] [FILE]

TRICK is a key of TRICKS; REQUEST is hello, load, run, unload or quit (run when left out). Its process id, and those of
the processes that it starts, go into FILE, one a line. `seesaw SIDE` plays no trick: of two of them, head is a tenth
slower in every second pair of launches, and a tenth faster in the others.
"""
import json
import os
import signal
import sys
import time

TRICK = sys.argv[1]
WHEN = sys.argv[2] if len(sys.argv) > 2 else "run"
IDS = sys.argv[3] if len(sys.argv) > 3 else None


def note(process):
    if IDS:
        with open(IDS, "a") as file:
            print(process, file=file, flush=True)


def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def forever():
    while True:
        time.sleep(1000)


def flood(text):
    while True:
        say(text)


def close_output():
    os.close(1)
    forever()


def start(session):
    """A child that ignores every request to end and holds standard output open."""
    child = os.fork()
    if child == 0:
        if session:
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        note(os.getpid())
        forever()


def ignore_the_end():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    forever()


def nest():
    start(session=False)
    start(session=True)
    ignore_the_end()


def signal_the_supervisor(number):
    """Who watches over this one and all that it starts."""
    def trick():
        start(session=True)
        time.sleep(0.2)  # for it to note itself
        os.kill(os.getppid(), number)
        forever()
    return trick


def leave_children():
    start(session=False)
    start(session=True)
    time.sleep(0.2)  # for both to note themselves
    sys.exit(0)


def answers(fields):
    def trick():
        say(json.dumps(fields) + "\n")
    return trick


def deep(opening, closing, form):
    """An answer whose fields are all nested so deep that a reader with a call a level dies of it."""
    levels = 30000 if len(opening) > 1 else 60000
    return form % ((opening * levels + "1" + closing * levels,) * form.count("%s")) + "\n"


def tell_environment():
    names = ["AWS_SECRET_ACCESS_KEY", "CUDA_OF_A_TEST", "DATA_ROOT", "GITHUB_TOKEN", "PATH"]
    say(json.dumps({"error": "sees " + " ".join(name for name in names if name in os.environ)}) + "\n")


TRICKS = {
    "behave": None,
    "seesaw": None,
    "stall": forever,
    "exit": lambda: sys.exit(7),
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "complain": lambda: sys.exit("the dog ate the kernel"),
    "flood": lambda: flood("x" * 65536),
    "flood_lines": lambda: flood('{"steps":1,"elapsed_ns":1000000}\n'),
    "flood_errors": lambda: (sys.stderr.write("e" * (1 << 20) + "\n"), sys.exit(7)),
    "close_output": close_output,
    "ignore_the_end": ignore_the_end,
    "leave_children": leave_children,
    "nest": nest,
    "kill_the_supervisor": signal_the_supervisor(signal.SIGKILL),
    "stop_the_supervisor": signal_the_supervisor(signal.SIGSTOP),
    "not_json": lambda: say("steps: 3\n"),
    "escape": lambda: say("\x1b[2J\x07\n"),
    "binary": lambda: os.write(1, b"\xff\x00\xfe\n"),
    "list": lambda: say("[]\n"),
    "deep": lambda: say("[" * 100000 + "\n"),
    "deep_value": lambda: say(deep('[', ']', '{"steps":%s,"elapsed_ns":%s,"protocol":%s,"loaded":%s}')),
    "deep_object": lambda: say(deep('{"a":', '}', '{"steps":%s,"elapsed_ns":%s,"protocol":%s,"loaded":%s}')),
    "empty": lambda: say("\n"),
    "no_fields": lambda: say("{}\n"),
    "tell_environment": tell_environment,
    "error": answers({"error": "out of coffee"}),
    "wrong_steps": answers({"steps": 12345, "elapsed_ns": 1}),
    "zero": answers({"steps": 1, "elapsed_ns": 0}),
    "negative": answers({"steps": 1, "elapsed_ns": -5}),
    "nan": lambda: say('{"steps":1,"elapsed_ns":NaN}\n'),
    "fraction": answers({"steps": 1, "elapsed_ns": 1.5}),
    "text": answers({"steps": 1, "elapsed_ns": "fast"}),
    "absurd": answers({"steps": 1, "elapsed_ns": 10**18}),
    "astronomic": answers({"steps": 1, "elapsed_ns": 10**30}),
    "longer_than_it_took": answers({"steps": 1, "elapsed_ns": 10**10}),
    "twice": lambda: say('{"steps":1,"elapsed_ns":1000}\n{"steps":1,"elapsed_ns":1000}\n'),
    "future": answers({"protocol": 2, "program": "hostile", "works": ["w"]}),
    "no_works": answers({"protocol": 1, "program": "hostile", "works": []}),
    "same_works": answers({"protocol": 1, "program": "hostile", "works": ["w", "w"]}),
    "bad_works": answers({"protocol": 1, "program": "hostile", "works": ["a\nb"]}),
}

def step_seconds():
    if TRICK != "seesaw" or WHEN == "base":
        return 1e-3
    with open(IDS) as file:
        pair = (len(file.readlines()) - 1) // 2
    return 1e-3 * (1.1 if pair % 2 else 1 / 1.1)


def run(steps):
    if TRICK == "seesaw":
        return {"steps": steps, "elapsed_ns": round(1e9 * steps * STEP)}
    begin = time.perf_counter_ns()
    time.sleep(steps * STEP)
    return {"steps": steps, "elapsed_ns": time.perf_counter_ns() - begin}


note(os.getpid())
STEP = step_seconds()
for line in sys.stdin:
    request = json.loads(line)
    what = request["do"]
    if what == WHEN and TRICKS[TRICK]:
        TRICKS[TRICK]()
    elif what == "hello":
        say(json.dumps({"protocol": 1, "program": "hostile", "works": ["w"], "simulated": TRICK == "seesaw"}) + "\n")
    elif what == "load":
        say('{"loaded":true}\n')
    elif what == "run":
        say(json.dumps(run(request["steps"])) + "\n")
    elif what == "unload":
        say('{"unloaded":true}\n')
    else:
        break
