"""Turns of the bare CLI on the operator's own machine, for development and for tests. In no image.

Nothing here confines a turn: it runs as the user who started it, with that user's files, network and
environment in reach (docs/how-to/without-a-sandbox.md). So it serves loopback addresses only, says so loudly,
and is a package of its own that no Dockerfile copies: a service of the stack cannot run a turn this way, not
even when it is told to.
"""
