"""Follows a run with httpx-sse, connecting again as often as it takes: URL RUN."""

import json
import os
import sys
import time

import httpx
from httpx_sse import connect_sse

ENDS = {"run.completed", "run.failed", "run.incomplete", "run.cancelled", "run.expired"}


def follow(client: httpx.Client, run_id: str, ids: list[int]) -> bool:
    """One connection; whether the run has ended."""
    headers = {"Authorization": f"Bearer {os.environ['GATEWAY_KEY']}"}
    if ids:
        headers["Last-Event-ID"] = str(ids[-1])
    with connect_sse(client, "GET", f"/runs/{run_id}/events", headers=headers) as source:
        if source.response.status_code == 204:
            return True
        for event in source.iter_sse():
            assert json.loads(event.data)["type"] == event.event
            ids.append(int(event.id))
            if event.event in ENDS:
                return True
    return False


def main() -> None:
    url, run_id = sys.argv[1:]
    ids: list[int] = []
    with httpx.Client(base_url=url, timeout=30) as client:
        while True:
            try:
                if follow(client, run_id, ids):
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.05)
    print(json.dumps({"ids": ids}))


main()
