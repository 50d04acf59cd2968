"""Lints and renders the chart with Helm's own code, and checks what comes out by the schemas of
Kubernetes, strictly. It reads a list of cases as JSON, each {"values": {...}}, and writes for
each {"error": "...", "objects": [...]}."""
import json
import sys

import kubernetes_validate
import yaml
from helm_python import chart
from helm_python.errors import HelmError

path, versions = sys.argv[1], sys.argv[2].split(",")
loaded = chart.Chart.load(path)
report = chart.lint(path, strict=True)
problems = [m["error"] for m in report["messages"] if m["severity"] >= 2] + report["errors"]
if problems:
    sys.exit("lint: " + "; ".join(problems))

answers = []
for case in json.load(sys.stdin):
    try:
        loaded.validate_schema(case["values"])
        rendered = loaded.render(case["values"], name="hotparam", namespace="default")
    except HelmError as e:
        answers.append({"error": str(e)})
        continue
    objects, error = [], ""
    for name in sorted(rendered):
        if name.endswith(".txt"):
            continue
        for document in yaml.safe_load_all(rendered[name]):
            if document is None:
                continue
            objects.append(document)
            if "coreos.com" in document["apiVersion"]:
                continue  # the Prometheus operator's
            for version in versions:
                try:
                    kubernetes_validate.validate(document, version, strict=True)
                except Exception as e:
                    error += f"{name}, Kubernetes {version}: {e}\n"
    answers.append({"error": error, "objects": objects})
json.dump(answers, sys.stdout)
