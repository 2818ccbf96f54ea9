"""Traces of steps."""

from __future__ import annotations

from typing import Dict, List


class Trace:
    """When each node of a step ran, on which thread and device.

    Attributes:
      json: for chrome://tracing and ui.perfetto.dev.
    """

    def __init__(self, text: str) -> None:
        self.json = text

    def save(self, path: str) -> None:
        """Writes the JSON to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json)

    def nodes(self) -> List[Dict]:
        """Returns the nodes, slowest first: "name", "op", "us" (microseconds) and "runs"."""
        return self._sums("name")

    def ops(self) -> List[Dict]:
        """Returns the same by op: "op", "us" and "runs"."""
        return self._sums("cat")

    def _sums(self, key: str) -> List[Dict]:
        import json

        sums: Dict[str, Dict] = {}
        for event in json.loads(self.json)["traceEvents"]:
            if event["ph"] != "X":
                continue
            row = sums.setdefault(event[key], {"op": event["cat"], "us": 0.0, "runs": 0})
            if key == "name":
                row["name"] = event["name"]
            row["us"] += event["dur"]
            row["runs"] += 1
        return sorted(sums.values(), key=lambda row: -row["us"])

    def __repr__(self) -> str:
        nodes = self.nodes()
        total = sum(node["us"] for node in nodes)
        return "<weir.Trace: %d nodes, %.0f us>" % (len(nodes), total)
