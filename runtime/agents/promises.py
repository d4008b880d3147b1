"""Finds what an agent's card promises that it would do: booking, ordering, sending. In English words. Pure.

A card may speak of all of that and promise none of it ("Payments: which cards the shop takes", "to book a
lesson, visitors call the studio"). A promise is a verb of which the agent is the doer: at the beginning of a
clause ("Books a table"), or after the agent ("It can book a table", "An assistant that books tables").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runtime.agents.clauses import claims, clause_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_THING = r"(?:\w+ ){0,2}"
_OBJECT = (
    r"(?:tables?|times?|slots?|meetings?|appointments?|calls?|talks?|rooms?|seats?|sessions?|tickets?|flights?"
    r"|visits?|hours?|demos?|stays?|places?|lessons?|treatments?)"
)
_MESSAGE = r"(?:messages?|e-?mails?|requests?|enquir\w+|inquir\w+|invitations?|feedback|complaints?)"
_GOODS = r"(?:an?|your|my|some|tickets|books|food|drinks|flowers|groceries)"
# What it is; the verbs of a promise with what they are about; the nouns by which a script may say it does it.
_FORMS: tuple[tuple[str, str, str], ...] = (
    (
        "booking",
        (
            rf"(?:book|reserve|schedule|arrange)(?:s|d|ing)? {_THING}{_OBJECT}"
            r"|(?:tak|mak|accept|handl|manag)(?:e|es|s|ing)? (?:\w+ )?(?:bookings?|reservations?)"
        ),
        r"(?:booking|reservation|appointment)s?",
    ),
    (
        "ordering",
        r"(?:plac|tak)(?:e|es|ing) (?:an? |your |my )?orders?|(?:order|buy|purchase)(?:s|ing)? "
        + _GOODS
        + r"|(?:tak|accept|handl|process)(?:e|es|s|ing)? (?:\w+ )?payments?",
        r"(?:orders?|checkout|payments?)",
    ),
    (
        "sending or forwarding",
        rf"(?:send|forward|relay|deliver)(?:s|ing)? {_THING}{_MESSAGE}|pass(?:es|ing)? {_THING}on",
        r"(?:sends|mails|forwards|delivers)",
    ),
    (
        "taking requests",
        rf"(?:tak|accept|record|leav|collect)(?:e|es|s|ing)? (?:down )?{_THING}{_MESSAGE}",
        r"(?:takes|records|collects|stores)",
    ),
    (
        "browsing the web",
        (
            r"(?:brows|search|surf)(?:e|es|s|ing)? (?:\w+ ){0,2}(?:web|internet|online)"
            r"|(?:does|do|runs?|performs?) (?:a |an )?web search(?:es)?"
            r"|(?:has|have|gives?|shows?|finds?|gets?|fetch(?:es)?|reports?|looks? up) (?:\w+ ){0,2}"
            r"(?:live|latest|real-time) (?:news|weather|prices)(?! of\b)"
        ),
        r"(?:web|internet|online|news|weather|prices)",
    ),
    (
        "remembering visitors",
        (
            r"remembers? (?:you|who you|your name|your preferences?|your visits?)"
            r"|ha(?:s|ve) an? long-term memory"
        ),
        r"remembers",
    ),
)
ACTIONS = tuple(
    (
        action,
        re.compile(rf"(?i)\b(?:{verbs})\b"),
        re.compile(rf"(?i)\b(?:{verbs}|{nouns})\b"),
    )
    for action, verbs, nouns in _FORMS
)
"""What an agent does not do by itself: its name, and the forms of a promise and of a script that does it."""

_AGENT = r"(?:agent|assistant|bot|chatbot|concierge|program|representative|helper|clerk)"
_CAN = (
    r"(?:(?:can|will|could|may|would|gladly|happily)|(?:(?:is|am|are) )?(?:able|happy|ready|glad|here)"
    r" to|lets? (?:you|visitors|guests|everybody)|helps? (?:(?:you|visitors|guests) )?(?:to)?)"
)
_ADVERBS = r"(?:(?:also|then|just|simply|please|now|here|even|always|automatically|instantly|and|or) +)*"
_SUBJECT = (
    rf"(?:it|i|we|you|(?:(?:this|the|an?|your|our|my|its) )?(?:\w+ ){{0,2}}{_AGENT})"
    r"(?:['\u2019](?:m|s|re))?(?: (?:that|which|who|for|to))? +|(?:ask|tell|get|let) (?:me|it|us)(?: to)? +"
)
_DOER = re.compile(rf"(?i)\W*{_ADVERBS}(?:{_SUBJECT})?(?:{_CAN} +)?{_ADVERBS}")
_AND_THEN = re.compile(r"(?i).*\b(?:and|or)\s+")
_COLON = re.compile(r"[:;(]\s*")
_INSTRUCTS = re.compile(r"(?i)\W*(?:to|for|if|when|where|how|who)\b")
_DOES = re.compile(r"(?i)[a-z]+s\b")


def promises(text: str) -> Iterator[str]:
    """Yield the name of each action that a text of the card promises and does not deny."""
    for action, promise, _ in ACTIONS:
        if any(_is_agents(text, match) for match in claims(promise, text)):
            yield action


def is_kept(action: str, served: str) -> bool:
    """Say whether `served`, what granted scripts say of themselves, has the action."""
    return any(any(claims(form, served)) for name, _, form in ACTIONS if name == action)


def _is_agents(text: str, match: re.Match[str]) -> bool:
    """Say whether it is the agent that does what `match` says."""
    clause = clause_at(text, match.start())
    own = _COLON.split(clause.own)[-1]
    if _AND_THEN.fullmatch(own) and not _DOER.fullmatch(own):
        return _DOES.match(match[0]) is not None
    if not _DOER.fullmatch(own):
        return False
    told = len(clause.parts) > 1 and _INSTRUCTS.match(clause.parts[0])
    return not told or bool(own.strip()) or _DOES.match(match[0]) is not None
