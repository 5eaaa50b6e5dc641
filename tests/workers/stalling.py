# SPDX-License-Identifier: MIT
"""A stepgate whose worker is stopped by the system now and then, as on a machine that somebody else uses too.

    stalling.py PROGRAM PERIOD_MS LENGTH_MS AFTER_STEPS [ARGUMENT...]

Runs PROGRAM with the arguments. Where they say `worker`, requests pass through here: once AFTER_STEPS steps of a work were asked
for, the worker stops for LENGTH_MS every PERIOD_MS.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

PROGRAM, ARGUMENTS = sys.argv[1], sys.argv[5:]
PERIOD, LENGTH = (float(milliseconds) / 1000 for milliseconds in sys.argv[2:4])
AFTER = int(sys.argv[4])
if "worker" not in ARGUMENTS:
    os.execv(PROGRAM, [PROGRAM, *ARGUMENTS])

worker = subprocess.Popen([PROGRAM, *ARGUMENTS], stdin=subprocess.PIPE)
due = threading.Event()


def stall():
    while worker.poll() is None:
        due.wait()
        time.sleep(PERIOD)
        try:
            os.kill(worker.pid, signal.SIGSTOP)
            time.sleep(LENGTH)
            os.kill(worker.pid, signal.SIGCONT)
        except ProcessLookupError:
            return


threading.Thread(target=stall, daemon=True).start()
asked = 0
for line in sys.stdin.buffer:
    request = json.loads(line)
    if request["do"] == "load":
        asked = 0
        due.clear()
    asked += request.get("steps", 0) + request.get("wash_out", 0)
    if request["do"] == "run" and asked > AFTER:
        due.set()
    worker.stdin.write(line)
    worker.stdin.flush()
    if request["do"] == "quit":
        break
sys.exit(worker.wait())
