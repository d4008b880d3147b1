"""What becomes of every command block of README, tutorial and how-to pages: run in this order, or why not.

A block is named by its page and its first line, whose first 60 characters count. A new block fails
tests/unit/test_page_blocks.py until it stands in one of the two tables.

tests/e2e/test_pages.py runs the blocks as they stand, in a copy of the checkout and on a stack of its own. It
writes its own port, stack and NAME where a reader would write theirs. Before each block `.env` holds the name
and port of the stack alone, unless the step says `keeps_env`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.harness.page_blocks import REPO, cut

README = "README.md"
FIRST = "docs/tutorial/first-answer.md"
MIRA = "docs/tutorial/your-persona.md"
GROUNDING = "docs/how-to/grounding.md"
CLIENT = "docs/how-to/client.md"
OPERATE = "docs/how-to/operate.md"
KEY = "docs/how-to/own-key.md"
PERSONA = "docs/how-to/own-persona.md"
PRIVACY = "docs/how-to/privacy.md"
UNSANDBOXED = "docs/how-to/without-a-sandbox.md"
TONE = "docs/how-to/tone-and-languages.md"
TOOLS = "docs/how-to/tools.md"
CURL = "curl -s http://127.0.0.1:8011/ -H 'Content-Type: application/json' -d"


@dataclass(frozen=True, slots=True)
class Step:
    """One block that is run. `shows` are texts that its output holds, `hides` texts that it must not hold.

    `without` are lines of the block that are left out, with the reason. `before` is a shell program that does
    what the page tells the reader in words.
    """

    page: str
    first: str
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    without: dict[str, str] = field(default_factory=dict)
    before: str = ""
    code: int = 0
    keeps_env: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The page and the first line's beginning."""
        return self.page, cut(self.first)


ANSWER = "Tuesdays and Thursdays from 14:00 to 16:00, London time (office-hours.md)."
UP = ("URL:    http://127.0.0.1:", "Model:  demo")
# What the pages tell in words: documents to put in, and what stands in the template's angle brackets.
DOCUMENTS = """
mkdir -p your-public-documents
printf '# About\\n\\nMira runs the ferry to Thorsby.\\n' >your-public-documents/about.md
"""
IDS = r"""
./gatehouse ask --json 'When are office hours?' | tail -1 >the-answer
sed 's/.*"context": "\([^"]*\)".*/\1/' the-answer >the-id
sed 's/.*"task": "\([^"]*\)".*/\1/' the-answer >the-task
"""
NEW = """
./gatehouse new NAME --name 'Mira of the ferry' --about 'a ferrywoman' --organization 'The Thorsby ferry' \\
  --url https://thorsby-ferry.net/ --fact 'The ferry runs daily.' --contact 'Ask on board.'
"""
ASKS = "it asks on a terminal; here its flags answer"
SIX = REPO.joinpath(MIRA).read_text().partition("```text\n")[2].partition("\n6 problems")[0].splitlines()
FILL_IN = "$EDITOR instances/NAME/agent.yaml instances/NAME/system-prompt.md instances/NAME/grounding/*.md"
A_TOOL = """
cd instances/NAME
awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' ../../docs/how-to/tools.md >tools/next_ferry.py
grant='Read,Glob,Grep,Bash(python3 ${tools_dir}/next_ferry.py:*)'
sed -i "s|^allowed_tools: .*|allowed_tools: $grant|" agent.yaml
echo 'next_ferry prints when the ferry leaves (`${tools_dir}/next_ferry.py`).' >>system-prompt.md
"""

COURSE = (
    Step(
        README,
        "./gatehouse up",
        shows=UP,
        without={"./gatehouse test": "this test is a part of it"},
    ),
    Step(README, "$ curl -s http://127.0.0.1:8011/ -H 'Content-Type: application/json' -d"),
    Step(FIRST, "./gatehouse up", shows=(*UP, "curl -s http://127.0.0.1:")),
    Step(
        FIRST,
        "curl -s http://127.0.0.1:8011/.well-known/agent-card.json",
        shows=('"name":"Ada Lovelace (automated representative)"',),
    ),
    Step(FIRST, CURL + " '", shows=('"state":"completed"', '"artifacts"', ANSWER)),
    Step(FIRST, CURL.replace("-s ", "-sN ") + " '", shows=('"final":true', "data: ")),
    Step(
        FIRST,
        "CONTEXT=$(cat /proc/sys/kernel/random/uuid)",
        shows=("babbage", "How did she work with Charles Babbage?"),
    ),
    Step(
        FIRST,
        "docker ps --all --filter label=gatehouse.turn --filter volume=gatehouse_",
        hides=("gatehouse-turn",),
    ),
    Step(
        CLIENT,
        "curl -s http://127.0.0.1:8011/.well-known/agent-card.json",
        shows=('"protocolVersion":"1.0"', '"protocolVersion":"0.3"'),
    ),
    Step(OPERATE, "docker compose exec front python -m runtime.health front"),
    Step(
        PRIVACY,
        "curl -s http://127.0.0.1:8011/ -H 'Content-Type: application/json' -d",
        before=IDS,
        shows=('"state":"completed"', ANSWER),
    ),
    Step(PRIVACY, "./gatehouse forget --context - <the-id", shows=("forgotten: 1 conversation, 1 task, ",)),
    Step(PRIVACY, "./gatehouse forget --all --yes", shows=("forgotten: ",)),
    Step(
        README,
        "AGENT_PORT=8012 COMPOSE_PROJECT_NAME=second ./gatehouse up",
        shows=("URL:    http://127.0.0.1:8012/",),
    ),
    Step(MIRA, "./gatehouse new mira --name 'Mira Okafor' --about 'a potter i", shows=("instances/mira",)),
    Step(MIRA, "cat >instances/mira/grounding/workshops.md <<'DOCUMENT'"),
    Step(MIRA, r"sed -i 's/^Plain, courteous and brief\..*/Warm and brief, in at"),
    Step(MIRA, "sed -i '/^skills:/a\\"),
    Step(MIRA, "./gatehouse check mira", shows=("ok mira: ",)),
    Step(MIRA, "cp -r instances/mira instances/broken", shows=tuple(SIX), code=3),
    Step(MIRA, "rm -r instances/broken"),
    Step(MIRA, "GATEHOUSE_AGENT=mira ./gatehouse up", shows=("Agent:  mira", "When is wheel throwing?")),
    Step(MIRA, "./gatehouse ask 'When is wheel throwing?'", shows=("Saturdays at 10:00",), keeps_env=True),
    Step(MIRA, "./gatehouse turn mira 'What do I have to bring?'", shows=("apron",), keeps_env=True),
    Step(
        MIRA,
        "sed -i 's/10:00/11:00/' instances/mira/grounding/workshops.md",
        shows=("Saturdays at 11:00",),
        hides=("Saturdays at 10:00",),
        keeps_env=True,
    ),
    Step(MIRA, "./gatehouse status", shows=("ready", "as loaded"), keeps_env=True),
    Step(
        PERSONA,
        "./gatehouse new NAME",
        before="rm -r instances/NAME\n" + NEW,
        without={"./gatehouse new NAME": ASKS},
    ),
    Step(PERSONA, "./gatehouse check NAME", shows=("ok NAME: ", "Agent:  NAME", "Who are you?")),
    Step(
        README,
        "./gatehouse new NAME",
        before="rm -r instances/NAME\n" + DOCUMENTS + NEW,
        without={"./gatehouse new NAME": ASKS},
        shows=("ok NAME: ", "Agent:  NAME", "quotes documents"),
    ),
    Step(TOOLS, "./gatehouse check NAME", before=A_TOOL, shows=("Agent:  NAME", "Monday: 07:45")),
    Step(TONE, "./gatehouse check NAME"),
    Step(GROUNDING, "./gatehouse check NAME"),
    Step(
        OPERATE,
        "./gatehouse up",
        shows=UP,
        without={"./gatehouse logs --follow": "it follows until it is stopped"},
    ),
    Step(README, "install -m 0600 /dev/null ~/model-key && $EDITOR ~/model-key", shows=("Model:  live",)),
    Step(
        KEY,
        "install -m 0600 /dev/null ~/model-key",
        before="rm ~/model-key",
        shows=("Model:  live",),
    ),
    Step(
        KEY,
        "MODEL_PRICES=my-model=0.30/1.20 MODEL_API_KEY_FILE=~/model-k",
        shows=("Model:  live",),
    ),
    Step(FIRST, "./gatehouse down"),
)

LIBRARIES = "tests/clients installs the same libraries from their locks"
_NOT_RUN = {
    (CLIENT, 'task["status"]["message"].get("metadata", {}).get("gatehouse", {}'): "an expression of Python",
    (CLIENT, "pip install 'a2a-sdk>=1,<2'"): LIBRARIES,
    (CLIENT, "pip install 'a2a-sdk>=0.3,<0.4'"): LIBRARIES,
    (CLIENT, "npm install @a2a-js/sdk@1"): LIBRARIES,
    (CLIENT, "npm install @a2a-js/sdk@0.3"): LIBRARIES,
    (OPERATE, "/etc/apt/sources.list.d/gatehouse-trixie.sources"): "names of files",
    (OPERATE, "docker compose up --build --detach --wait"): (
        "another way to start the same stack; tests/harness/stack.py starts every stack in this way"
    ),
    (
        OPERATE,
        "BASE=debian:trixie-slim@sha256:… ./gatehouse up",
    ): "the digest is of the reader's registry",
    (
        OPERATE,
        "TUNNEL_TOKEN_FILE=/path/token TUNNEL_IMAGE=cloudflare/cloudflared@sha256",
    ): "a tunnel needs a token and its image",
    (OPERATE, "./gatehouse test"): "this test is a part of it",
    (OPERATE, "FRONT_FORWARDED_FROM=local PUBLIC_AGENT_URL=https://agent.ex"): (
        "a proxy in front is not ours; tests/unit/front holds what the setting does"
    ),
    (KEY, "chown 10203 model-key && chmod 0400 model-key"): "needs root; for plain compose only",
    (
        TOOLS,
        "python3 -I instances/NAME/tools/next_ferry.py --day wednesday",
    ): "tests/unit/test_page_examples.py runs this script",
    (UNSANDBOXED, ".venv/bin/python -m runtime.server --agent ada --sandbox none"): (
        "it serves until it is stopped; tests/hermetic starts the same"
    ),
    (UNSANDBOXED, 'echo "When are your office hours?" | .venv/bin/python -m run'): (
        "it needs the CLI on this host; tests/hermetic runs the same"
    ),
    (UNSANDBOXED, './gatehouse turn ada --sandbox none "When are your office ho'): (
        "it needs the CLI on this host; tests/hermetic runs the same"
    ),
    (GROUNDING, "inline_grounding: [faq.md]"): "a line of agent.yaml",
    (PERSONA, "grounding_dir: ~/public-documents"): "a line of agent.yaml",
    (PERSONA, 'inline_grounding: [faq.md, "hours/*.md"]'): "a line of agent.yaml",
    (
        PERSONA,
        "allowed_tools: Read,Glob,Grep,Bash(python3 ${tools_dir}/opening_hours.py:",
    ): "a line of agent.yaml",
    (
        PERSONA,
        "instances/NAME/agent.yaml:37:10: timeout: must be a number, not '90s' (w",
    ): "an example of output",
}
NOT_RUN = {(page, cut(first)): reason for (page, first), reason in _NOT_RUN.items()}
