"""Asks a guard about requests: check.py http://127.0.0.1:9133 '/search?q=phone' ...

Prints the status of each: 200 if it may pass. A guard that is away or slow refuses nothing.
"""
import json
import os
import sys
import time
import urllib.request

base = sys.argv[1]
timeout = float(os.environ.get("HOTPARAM_TIMEOUT", "0.5"))  # seconds


def ask(path, question):
    body = json.dumps(question).encode()
    request = urllib.request.Request(base + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.loads(response.read() or "{}")
    except (OSError, ValueError):
        return {}  # away, slow or wrong


for uri in sys.argv[2:]:
    answer = ask("/v1/check", {"method": "GET", "uri": uri, "addr": "192.0.2.1", "hold": True})
    if not answer.get("allowed", True):
        print(answer["status"])  # with answer["headers"] and answer["body"]
        continue
    time.sleep(answer.get("delay_ms", 0) / 1000)
    started = time.monotonic()
    # ... the request is served here ...
    print(200)
    if "ticket" in answer:
        took = (time.monotonic() - started) * 1000
        ask("/v1/done", {"ticket": answer["ticket"], "bytes": 0, "ms": took})
