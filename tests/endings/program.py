"""What a program in the CLI's place writes, how it ends, and what becomes of it at the deadline."""

from __future__ import annotations

from typing import Final

from tests.endings.row import (
    CHILD,
    CLOSED,
    FINE,
    HANG,
    LONG,
    MIB,
    SAID,
    SHOWN,
    START,
    answers,
    crashes,
    delta,
    die,
    empty,
    fails,
    leave,
    result,
    said,
    say,
    times_out,
    used,
    write,
)

FINE_LINE: Final = '{"type": "result", "result": "The sky is blue."}'

WRITTEN: Final = (
    answers("a result and nothing else", result()),
    answers(
        "a growing answer and its result", *SHOWN, said(LONG), result(LONG), answer=LONG.strip(), partial=True
    ),
    answers("tools and a result", used("Read"), used("Glob"), used("Unknown"), result()),
    answers("two results", result(), result("The sky is green.")),
    answers("a result without a line feed", write('{"type": "result", "result": "The sky is blue."}')),
    answers(
        "a result whose line ends in CR LF", write('{"type": "result", "result": "The sky is blue."}\r\n')
    ),
    answers("no result, but a message", said(), answer=SAID),
    answers("no result, but deltas", delta(SAID), answer=SAID),
    answers("an empty result after a message", said(), result(""), answer=SAID),
    answers("a draft that a retry takes back", *SHOWN, START, delta(FINE), result(), partial=True),
    answers(
        "an answer longer than 64 KiB, which is cut there",
        write('{"type": "result", "result": "'),
        write("blue sky\\n", 8192),
        write('"}\n'),
        answer=("blue sky\n" * 8192)[: 64 * 1024].strip(),
    ),
    answers(
        "an answer with a key in it, which is withheld",
        result("The key is sk-ant-api03-0000000000."),
        answer="The key is [withheld].",
    ),
    empty("nothing at all"),
    empty("an empty result", result("")),
    empty("a result that is no text", result(7)),
    empty("a result of which nothing can be seen", result("\u200b \u00ad\u2060\n")),
    empty("empty lines alone", write("\n", 100_000)),
    empty(
        "objects of no known kind", say(type=7), say(type="system"), say(), say(type="assistant", message=[])
    ),
    fails("model", "error", "a result that is marked as an error", result(is_error=True)),
    fails("model", "error", "a result of a subtype of error", result("", subtype="error_max_turns")),
    fails("model", "error", "an API error as a message", said("API Error: 529", isApiErrorMessage=True)),
    fails(
        "model",
        "error",
        "an API error as a message and as its result",
        said("API Error: 529", isApiErrorMessage=True),
        result("API Error: 529"),
    ),
    answers("lines that are no JSON, and a result", write("not JSON\n{\n\x1b[31m\n"), result()),
    answers("JSON that is no object, and a result", write('[1, 2]\nnull\n"x"\n7\n1e999\n'), result()),
    answers("JSON nested a hundred thousand times, and a result", write("[", 100_000), write("\n"), result()),
    answers("NUL bytes, and a result", write("\0", 70_000), write("\n"), result()),
    answers("bytes that are no UTF-8, and a result", write("\xff\xfe\xc3\x28\n"), result()),
    answers(
        "a result with bytes that are no UTF-8",
        write('{"type": "result", "result": "The sky is \xff blue."}\n'),
        answer="The sky is \ufffd blue.",
    ),
    answers("a line of 256 KiB, and a result", write("y", 256 * 1024), write("\n"), result()),
    answers(
        "a result in a line of just under 1 MiB",
        write('{"type": "result", "padding": "'),
        write("y", MIB - 100),
        write('", "result": "The sky is blue."}\n'),
    ),
    answers("a line over the cap, and a result", write("y", 2 * MIB), write("\n"), result()),
    answers("a message, and a line over the cap", said(), write("y", 2 * MIB), write("\n"), answer=SAID),
    empty(
        "a result in a line over the cap",
        write('{"type": "result", "padding": "'),
        write("y", MIB),
        write('", "result": "The sky is blue."}\n'),
    ),
    answers("twenty thousand lines, and a result", write("{}\n", 20_000), result()),
    answers("a megabyte on stderr, and a result", {"stderr": "y" * 1023 + "\n", "n": 1024}, result()),
    fails("output", "error", "more lines than the cap", write("{}\n", 100_001), HANG, reason="output-cap"),
    fails("output", "error", "bytes without end", {"flood": "y" * 1023 + "\n"}, reason="output-cap"),
    fails("output", "error", "one line without end", {"flood": "y"}, reason="output-cap"),
    fails(
        "output",
        "error",
        "stderr without end",
        {"stderr": "y" * 1023 + "\n", "n": 33 * 1024},
        HANG,
        reason="output-cap",
    ),
    answers("a result, and then bytes without end", result(), {"flood": "y"}, reason="output-cap"),
)

EXITS: Final = (
    *(
        row
        for code in (1, 3, 127)
        for row in (
            crashes(f"exit code {code} before any output", leave(code)),
            crashes(
                f"exit code {code} in the middle of a delta",
                *SHOWN,
                write('{"type": '),
                leave(code),
                partial=True,
            ),
            answers(f"exit code {code} after a message", said(), leave(code), answer=SAID),
            answers(f"exit code {code} after the result", result(), leave(code)),
        )
    ),
    answers(
        "exit code 0 in the middle of a line", said(), write('{"type": "result", '), leave(0), answer=SAID
    ),
    answers("exit code 0 in the middle of a delta", *SHOWN, leave(0), answer=LONG.strip(), partial=True),
    *(
        row
        for signal in ("SIGKILL", "SIGSEGV", "SIGTERM", "SIGABRT")
        for row in (
            crashes(f"{signal} before any output", die(signal)),
            answers(f"{signal} after the result", result(), die(signal)),
        )
    ),
    crashes("out of memory before any output", {"eat": True}),
    answers("out of memory after the result", result(), {"eat": True}),
    answers("a grandchild that holds stdout, and a result", *CHILD, result()),
    empty("a grandchild that holds stdout, and no result", *CHILD),
    crashes("a grandchild that holds stdout, and exit code 1", *CHILD, leave(1)),
    answers("a result, and the program stays", result(), HANG, reason="disconnect"),
    answers(
        "a result, and stdout closed, and the program stays", result(), CLOSED, HANG, reason="disconnect"
    ),
    empty("stdout closed early", CLOSED),
    answers("a fork bomb, and a result", {"bomb": True}, result()),
    crashes("a fork bomb that is killed", {"bomb": True}, die("SIGKILL")),
    answers("a message of which stdin is not read to its end", result(), filler=25_000),
    answers("a message that is read to its end", {"read": True}, result(), filler=25_001),
)

DEADLINES: Final = (
    times_out("silence", HANG),
    times_out("an answer that grows and stops", *SHOWN, HANG, partial=True),
    times_out("a whole message and no end", *SHOWN, said(LONG), HANG, partial=True),
    times_out("steps and no end", used("Read"), used("Glob"), HANG),
    times_out("lines that keep coming", *SHOWN, {"drip": "{}\n"}, partial=True),
    times_out("stdout closed, and the program stays", *SHOWN, CLOSED, HANG, partial=True),
    times_out("stdin is never read, and the program stays", HANG, filler=25_000),
    times_out("a fork bomb that stays", {"bomb": True}, HANG),
    times_out("a grandchild that holds stdout, and the program stays", *CHILD, HANG),
    answers("a result, and the program stays until then", result(), HANG, persona="brief", reason="deadline"),
)
