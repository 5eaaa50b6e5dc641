# SPDX-License-Identifier: MIT
"""replay.py FILE COUNT: a worker that gives the first COUNT answers of a recorded conversation, whichever comes to which request."""
import json
import sys

lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
answers = {(request["do"], request.get("work")): answer for request, answer in list(zip(lines[::2], lines[1::2]))[:int(sys.argv[2])]}
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "quit":
        break
    print(json.dumps(answers.get((request["do"], request.get("work")), {"error": f"nothing was recorded for {line.strip()}"})), flush=True)
