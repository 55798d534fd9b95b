"""Is it alive, can it work, what does it count. Probes call no model and tell no secret."""

from __future__ import annotations

import hmac
import ipaddress

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from adapters.canonical.faults import Fault
from gateway.http.deps import Gateway
from gateway.policy.auth import bearer

router = APIRouter()

CALLS = (
    "Calls go to /v1/chat/completions, /v1/responses, /v1/messages or /v1/embeddings; "
    "GET /v1/models lists the models."
)
"""Where to go, for whoever came to the wrong place."""


LOOKED_AT = ["GET", "HEAD"]
"""How load balancers and uptime monitors look at a probe; many want no body."""


@router.api_route("/healthz", methods=LOOKED_AT)
async def healthz() -> dict[str, str]:
    """Liveness: the process and its event loop answer."""
    return {"status": "ok"}


@router.api_route("/readyz", methods=LOOKED_AT)
async def readyz(state: Gateway) -> Response:
    """Readiness: 503 while the store can't take a ledger row, or does not within a second, and
    while draining; ``status`` says which. A provider that is down does not make the gateway
    unready (case F03)."""
    if state.draining:
        return JSONResponse({"status": "draining"}, status_code=503)
    try:
        await state.store.ready()
    except Fault:
        return JSONResponse({"status": "store unavailable"}, status_code=503)
    return JSONResponse({"status": "ready"})


@router.head("/")
async def root() -> Response:
    """What Claude Code asks first."""
    return Response(status_code=200)


@router.get("/")
async def welcome() -> dict[str, str]:
    """What a person with a browser, or a load balancer without orders, asks first."""
    return {"status": "ok", "calls": CALLS}


@router.get("/metrics")
async def metrics(request: Request, state: Gateway) -> Response:
    """The Prometheus exposition, on loopback or with ``observe.metrics_token``."""
    token = state.snapshot.observe.metrics_token
    if token is not None:
        shown = bearer({k.lower(): v for k, v in request.headers.items()}) or ""
        if not hmac.compare_digest(shown.encode(), token.reveal().encode()):
            raise Fault("unauthenticated", "Metrics need the token set as observe.metrics_token.")
    elif not _loopback(request):
        raise Fault(
            "forbidden",
            "Metrics answer on loopback only. Set observe.metrics_token to scrape from elsewhere.",
        )
    kind, body = state.runtime.metrics.render()
    return Response(body, media_type=kind)


def _loopback(request: Request) -> bool:
    host = "" if request.client is None else request.client.host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
