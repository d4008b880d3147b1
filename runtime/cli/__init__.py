"""The command line of a persona's author and of the operator: `gatehouse COMMAND`.

It runs on the host in an environment of its own (requirements/cli.txt) and is copied into no image. Each
command is one module that holds a click command named `command`, imported only when it is run.
"""
