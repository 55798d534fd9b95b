"""From an alias to the deployments to try, best first, each with why.

A plan is made once per call. It takes nothing: the probe of a half-open breaker is taken by
``Breakers.admit`` just before the call leaves. Must not know how tokens are counted or what a
request looks like; it is told what the request needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import ceil, inf, log
from typing import Any, NamedTuple

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.routing.breaker import Breakers
from gateway.routing.stats import Stats
from gateway.settings.snapshot import Alias, Target
from gateway.store.rows import packed


@record(frozen=True, slots=True)
class Ask:
    """What a request asks of a deployment.

    ``needs``: capability names. ``fits``: why the request can't be made to fit a target's
    window (one short phrase), or ``None``; not there if it fits every window. The token numbers
    are estimates; ``cheapest`` prices them.
    """

    needs: frozenset[str]
    fits: Callable[[Target], str | None] | None = None
    input_tokens: int = 0
    output_tokens: int = 0


@record(frozen=True, slots=True)
class Candidate:
    """A target to try. ``index`` is its place in ``alias.targets``.

    ``forced``: its breaker is open, but there is nobody else; pass it on to ``admit``.
    """

    target: Target
    index: int
    name: str
    forced: bool = False


@record(frozen=True, slots=True)
class Plan:
    """The targets to try in order, and every target of the alias with why it stands where.

    ``fault`` is set exactly where ``targets`` is empty.
    """

    targets: tuple[Candidate, ...]
    considered: tuple[Mapping[str, Any], ...]
    fault: Fault | None = None
    told: str | None = field(init=False)
    """``considered`` as the ledger has it; most calls of an alias share one plan."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "told", packed(self.considered))


FIELD_OF = {"logprobs": "logprobs", "tools": "tools", "streaming": "stream"}
"""The request field that asks for a capability; the others are asked for by messages' parts."""


TOO_LONG = "Shorten the messages, ask for a shorter answer, or use a model with a wider window."


class _Skip(NamedTuple):
    """Why a target was left out: ``cause`` is ``lacks``, ``window`` or ``breaker``."""

    cause: str
    why: str


class _Scene(NamedTuple):
    """What the strategies may look at."""

    ask: Ask
    stats: Stats
    now: float
    random: Callable[[], float]


_Ranked = list[tuple[Candidate, str]]

_NOTHING: tuple[Sequence[Target], Plan] = ((), Plan((), ()))
"""What is kept of an alias that nobody has called."""


class Router:
    """Plans the calls of one configuration, and lives as long as it does: what is made once for
    an alias is kept here, so that nothing outlasts a reload.

    :param random: a number in [0, 1), for ``weighted`` and for fair exploring.
    """

    __slots__ = ("_breakers", "_listed", "_random", "_stats")

    def __init__(self, breakers: Breakers, stats: Stats, random: Callable[[], float]) -> None:
        self._breakers = breakers
        self._stats = stats
        self._random = random
        self._listed: dict[str, tuple[Sequence[Target], Plan]] = {}

    def listed(self, alias: Alias, needs: frozenset[str]) -> Plan | None:
        """The plan of a call that fits every window, if it needs no choosing: any target can
        serve it, none has failed lately, and they are tried as listed. ``None`` if it does."""
        if alias.strategy != "priority" or self._breakers.tripped or not needs <= alias.common:
            return None
        targets, every = self._listed.get(alias.name, _NOTHING)
        return every if targets is alias.targets else self._list(alias)

    def plan(self, alias: Alias, ask: Ask, now: float) -> Plan:
        """The order in which to try ``alias``'s targets for ``ask``."""
        listed = self.listed(alias, ask.needs) if ask.fits is None else None
        return self._chosen(alias, ask, now) if listed is None else listed

    def _chosen(self, alias: Alias, ask: Ask, now: float) -> Plan:
        """The targets that are able and awake, in the order of the alias's strategy."""
        breakers = self._breakers
        targets, listed = self._listed.get(alias.name, _NOTHING)
        if targets is not alias.targets:
            listed = self._list(alias)
        able: list[Candidate] = []
        skipped: dict[int, _Skip] = {}
        for candidate in listed.targets:
            skip = _unable(candidate.target, ask)
            if skip is None:
                able.append(candidate)
            else:
                skipped[candidate.index] = skip
        usable = able
        if breakers.tripped:
            usable = [c for c in able if breakers.state(c.name, now) != "open"]
        if alias.strategy == "priority" and len(usable) == len(listed.targets):
            return listed
        if len(usable) < len(able):
            usable = usable or _last_resort(able, breakers, now)
            chosen = {c.index for c in usable}
            for candidate in able:
                if candidate.index not in chosen:
                    skipped[candidate.index] = _waiting(candidate.name, breakers, now)
        scene = _Scene(ask, self._stats, now, self._random)
        ranked = RANKINGS[alias.strategy](usable, scene)
        considered = _considered(alias, ranked, skipped)
        if not ranked:
            return Plan((), considered, _nobody(alias, ask, skipped, breakers, now))
        return Plan(tuple(c for c, _ in ranked), considered)

    def _list(self, alias: Alias) -> Plan:
        """All targets of ``alias`` in their order: what most calls get. It depends on them alone:
        an agent's own variant of an alias shares it."""
        targets = tuple(Candidate(t, n, t.deployment.name) for n, t in enumerate(alias.targets))
        listed = Plan(targets, _considered(alias, _listed(targets), {}))
        self._listed[alias.name] = alias.targets, listed
        return listed


def _unable(target: Target, ask: Ask) -> _Skip | None:
    able = target.deployment.facts.capabilities
    if not ask.needs <= able:
        missing = ask.needs - able
        return _Skip("lacks", "lacks " + ", ".join(sorted(missing)))
    misfit = None if ask.fits is None else ask.fits(target)
    return None if misfit is None else _Skip("window", misfit)


def _waiting(name: str, breakers: Breakers, now: float) -> _Skip:
    seconds = ceil(breakers.wait(name, now))
    return _Skip("breaker", f"breaker open, probed again in {seconds} s")


def _last_resort(able: list[Candidate], breakers: Breakers, now: float) -> list[Candidate]:
    """Of targets that are all open, the one nearest to its probe: a pool of one (or of none
    that works) is not cooled to zero (case R02). One probe at a time, so none if it is out."""
    free = [c for c in able if not breakers.probing(c.name, now)]
    if not free:
        return []
    nearest = min(free, key=lambda c: breakers.wait(c.name, now))
    return [Candidate(nearest.target, nearest.index, nearest.name, forced=True)]


def _considered(
    alias: Alias, ranked: _Ranked, skipped: Mapping[int, _Skip]
) -> tuple[Mapping[str, Any], ...]:
    """Chosen targets in order, then the skipped ones as listed."""
    rows: list[Mapping[str, Any]] = []
    for order, (candidate, why) in enumerate(ranked, start=1):
        if candidate.forced:
            why = "every breaker is open; this one is nearest to its probe"
        rows.append({"deployment": candidate.name, "order": order, "why": why})
    for index, skip in sorted(skipped.items()):
        name = alias.targets[index].deployment.name
        rows.append({"deployment": name, "order": None, "why": skip.why})
    return tuple(rows)


def _nobody(
    alias: Alias, ask: Ask, skipped: Mapping[int, _Skip], breakers: Breakers, now: float
) -> Fault:
    """The fault of an empty plan.

    Where a breaker is among the reasons, waiting may help: 503 with ``retry_after``. Where all
    reasons lie in the request, the same request will never do: a 400, which no client retries.
    """
    names = [target.deployment.name for target in alias.targets]
    reasons = "; ".join(f"{names[n]}: {skip.why}" for n, skip in sorted(skipped.items()))
    message = f"No deployment of {alias.name!r} can take this request. {reasons}."
    causes = {skip.cause for skip in skipped.values()}
    if "breaker" in causes or not causes:
        waits = [breakers.wait(names[n], now) for n, s in skipped.items() if s.cause == "breaker"]
        return Fault("no_deployment", message, retry_after=min(waits, default=None))
    if "window" in causes:
        return Fault("context_overflow", f"{message} {TOO_LONG}")
    lacking = ask.needs.difference(*(t.deployment.facts.capabilities for t in alias.targets))
    fields = {FIELD_OF.get(name, "messages") for name in lacking}
    return Fault("unsupported", message, param=min(fields, default=None))


def _listed(usable: Sequence[Candidate]) -> _Ranked:
    return [(c, f"listed as {c.index + 1}") for c in usable]


def _priority(usable: list[Candidate], scene: _Scene) -> _Ranked:
    return _listed(usable)


def _weighted(usable: list[Candidate], scene: _Scene) -> _Ranked:
    """Drawn without replacement by weight: ascending Exp(weight) draws have that law
    (Efraimidis and Spirakis). Weight 0 comes last, as listed: a reserve."""
    drawn: list[tuple[float, Candidate]] = []
    for candidate in usable:
        weight = candidate.target.weight
        draw = -log(1.0 - scene.random()) / weight if weight > 0 else inf
        drawn.append((draw, candidate))
    drawn.sort(key=lambda pair: (pair[0], pair[1].index))
    return [(c, f"drawn by weight {c.target.weight:g}") for _, c in drawn]


def _least_latency(usable: list[Candidate], scene: _Scene) -> _Ranked:
    """Unmeasured targets first, in random order, so that each is measured soon; then by time."""
    known = [(scene.stats.latency(c.name, scene.now), scene.random(), c) for c in usable]
    known.sort(key=lambda row: (-1.0 if row[0] is None else row[0], row[1]))
    return [
        (c, "first content not measured lately" if t is None else f"first content in {t:.2f} s")
        for t, _, c in known
    ]


def _cheapest(usable: list[Candidate], scene: _Scene) -> _Ranked:
    """By price of the estimated tokens; an unknown price comes last."""
    priced = [(cost(c.target, scene.ask), c) for c in usable]
    priced.sort(key=lambda row: (inf if row[0] is None else row[0], row[1].index))
    return [
        (c, "price unknown" if nano is None else f"about {nano / 1e9:.6f} USD")
        for nano, c in priced
    ]


def cost(target: Target, ask: Ask) -> int | None:
    """The estimated price of ``ask`` at ``target`` in nano-dollars, cache reads not foreseen."""
    price = target.deployment.facts.price
    if price is None:
        return None
    inward = price.input.at(ask.input_tokens) * ask.input_tokens
    outward = price.output.at(ask.input_tokens) * ask.output_tokens
    return (inward + outward) // 1_000_000


RANKINGS: dict[str, Callable[[list[Candidate], _Scene], _Ranked]] = {
    "priority": _priority,
    "weighted": _weighted,
    "least_latency": _least_latency,
    "cheapest": _cheapest,
}
"""One function for each value of ``Alias.strategy``."""
