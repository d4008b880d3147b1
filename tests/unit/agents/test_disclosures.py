"""Secrets in what visitors can read: found in place in every file, never repeated, and few false alarms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agents import check, texts
from runtime.agents.disclosures import MAX_SPANS, is_secret_name, masked, secrets
from runtime.agents.instance import inspect_instance
from runtime.agents.quoting import shown

ROOT = Path(__file__).resolve().parents[3]
A40 = "a1B2c3D4e5" * 4
# Made up, and put together here, so that no scanner of this repository takes one for real.
STRONG = {
    "a private key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "a PuTTY private key": "PuTTY-User-Key-File-" + "3: ssh-ed25519",
    "an age private key": "AGE-SECRET-KEY-" + "1" + "Q" * 58,
    "a model API key": "sk-" + "ant-api03-" + A40,
    "an AWS access key": "AKIA" + "Z" * 16,
    "a GitHub token": "ghp" + "_" + A40,
    "a GitLab token": "glpat" + "-" + A40,
    "a Slack token": "xoxb" + "-" + A40,
    "a Slack webhook": "https://hooks.slack.com" + "/services/T000/B000/" + A40,
    "a Google API key": "AIza" + A40,
    "a Google client secret": "GOCSPX" + "-" + A40,
    "a Stripe key": "sk_" + "live_" + A40,
    "an npm token": "npm" + "_" + A40,
    "a PyPI token": "pypi" + "-" + A40 * 2,
    "a Hugging Face token": "hf" + "_" + A40,
    "a SendGrid key": "SG" + "." + A40 + "." + A40,
    "a Telegram bot token": "123456789" + ":AA" + A40,
    "a DigitalOcean token": "dop_v1" + "_" + "0a" * 32,
    "an Azure account key": "AccountKey=" + A40 * 2,
    "a tunnel token": "eyJhIjoi" + A40 * 3,
    "a signed token (JWT)": "eyJ" + A40 + ".eyJ" + A40 + "." + A40,
    "a Bearer token": "Bearer " + A40,
    "a password in an address": "https://ada:" + "s3cr3tw0rd" + "@office.example/",
}


def kinds(text: str) -> list[tuple[int, int, str, bool]]:
    return [(one.line, one.col, one.kind, one.certain) for one in secrets(text)]


@pytest.mark.control("CFG-02")
@pytest.mark.parametrize(("kind", "secret"), list(STRONG.items()), ids=list(STRONG))
def test_every_form_is_found_at_its_place_and_masked(kind: str, secret: str) -> None:
    ((line, col, found, certain),) = kinds(f"# Notes\nthe key: {secret}, keep it\n")
    assert (line, found, certain) == (2, kind, True)
    assert 10 <= col <= 18
    quoted = shown(f"x {secret} y")
    assert not any(part in quoted for part in (A40[:12], "s3cr3tw0rd", "Z" * 12, "Q" * 12, "0a0a0a"))
    assert masked("nothing here") == "nothing here"


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter22",
        "Password = correcthorse",
        "API key: abc123def",
        '{"token": "a1b2c3d4"}',
        "**Passphrase**: mellon",
        "postgres://user:password@db.example/x",
        "Passwort: hunter22",
        "Kennwort: Sesam\u00f6ffne",
        "Contrase\u00f1a: secreta9",
        "Senha: abrete",
        "mot de passe : ouvretoi",
        "Mot de passe\u00a0: ouvretoi",
        "mot de passe\u202f: \u00ab\u00a0ouvretoi\u00a0\u00bb",
        "clave: abrete1",
        "Wachtwoord: openu",
        "has\u0142o: sezamie",
        "\u041f\u0430\u0440\u043e\u043b\u044c: \u0441\u0435\u0437\u0430\u043c",
        "\u5bc6\u7801\uff1ahunter22",
    ],
)
def test_weaker_signs_are_only_warnings(text: str) -> None:
    ((*_, certain),) = kinds(text)
    assert not certain


@pytest.mark.parametrize(
    "text",
    [
        "No addresses, telephone numbers or passwords.",
        "The secret: she was a mathematician at heart.",
        "password: <your password>",
        "password: ${PASSWORD}",
        "token: null",
        "Palabras clave: cer\u00e1mica",
        "La clave: paciencia",
        "Das Passwort: Sie bekommen es am Empfang.",
        "A token is a word. Key: C major, 4 sharps",
        "task-based-approach-to-learning sk-learn-based-approach-to-music",
        "See https://example.org:8080/a@b and mailto:ada@example.org",
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
        "The Bearer of this letter is known to me.",
        "ghost_writer, xoxo, SG. Smith, hf_radio",
    ],
)
def test_plain_text_is_no_alarm(text: str) -> None:
    assert kinds(text) == []


def test_our_own_personas_hold_nothing_that_looks_like_a_secret() -> None:
    for path in (ROOT / "instances").rglob("*"):
        if path.is_file():
            assert kinds(path.read_text()) == [], path


@pytest.mark.parametrize(
    "name",
    [
        *("id_rsa", "id_ed25519", "ID_ECDSA_SK", "a.p12", "b.PFX", "vault.kdbx", "site.key", "x.ovpn"),
        *("credentials.json", "my-service-account-1.json", "client_secret_42.json", "key4.db"),
    ],
)
def test_names_of_key_files_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["id_rsa.pub", "keys.md", "turkey", "a.pem", "monkey.txt", "facts.json"])
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.control("CFG-02")
def test_secrets_are_reported_wherever_they_lie_in_one_run_and_repeated_nowhere(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = STRONG["a model API key"]
    folder = root / "instances/good"
    (folder / "agent.yaml").write_text(
        f"grounding_dir: docs\n# {key}\nport: {key}\n{key}: 1\nmodel: '{key} '\n"
        f"skills: [{{id: '{key}', tags: ['{key}']}}]\n"
        f"allowed_tools: 'Bash(python3 ${{tools_dir}}/hours.py:*), {key}'\n"
        f"inline_grounding: ['{key}.md', '../{key}']\nextra_read_dirs: ['{key}']\n"
    )
    (folder / "system-prompt.md").write_text(f"You are it.\nUse hours with {key} and ${{{key[:50]}}}.\n")
    (folder / "tools/hours.py").write_text(f"KEY = '{key}'\n")
    (root / "docs/fact.md").write_text(f"A fact.\n\n{key} and {STRONG['a GitHub token']}\n")
    (root / "docs/data.bin").write_bytes(b"\xff\xfe\n" + key.encode())
    (root / "docs/id_rsa").write_text("x\n")
    (root / "docs/draft.md").write_text("password: hunter22\n")
    assert check.main(["--root", str(root), "good"], {}) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert check.main(["--root", str(root), "--json", "good"], {}) == 3
    out, _ = capsys.readouterr()
    for text in (err, out):
        assert A40[:10] not in text
        assert STRONG["a GitHub token"][:10] not in text
    holds = [
        (problem["file"], problem["line"])
        for problem in json.loads(out)["instances"][0]["problems"]
        if problem["message"].startswith(
            ("holds a model API key", "holds a GitHub token", "has the name of a key")
        )
    ]
    assert {*holds} == {
        *(("instances/good/agent.yaml", line) for line in (2, 3, 4, 5, 6, 7, 8, 9)),
        ("instances/good/system-prompt.md", 2),
        ("instances/good/tools/hours.py", 1),
        ("docs/fact.md", 3),
        ("docs/data.bin", 2),
        ("docs/id_rsa", 0),
    }
    warnings = json.loads(out)["instances"][0]["warnings"]
    assert ("docs/draft.md", 1) in {(one["file"], one["line"]) for one in warnings}


def test_a_file_past_the_bound_is_looked_at_up_to_it_and_that_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "LOOKED_AT_BYTES", 100)
    (root / "docs/long.md").write_text("x" * 200 + STRONG["a model API key"])
    seen = inspect_instance(root, "good", {})
    assert seen.agent is not None
    assert "1 files not looked through for secrets to their end" in {one.message for one in seen.warnings}


@given(
    st.text()
    | st.lists(st.sampled_from([*STRONG.values(), " ", "\n", "password: ", "x1"]), max_size=6).map("".join)
)
def test_every_place_lies_in_the_text_and_nothing_certain_is_left_after_masking(text: str) -> None:
    lines = text.splitlines() or [""]
    for one in secrets(text):
        assert 1 <= one.line <= len(lines)
        assert 1 <= one.col <= len(lines[one.line - 1]) + 1
    assert shown(text).isprintable()
    assert len(shown(text)) <= 60


@pytest.mark.parametrize(
    "piece",
    [
        *("eyJ-", "eyJaaaaaaaa.eyJ-", "sk-", "sk-a-", "SG.", "SG.a.", "://a:", "://a:b", "password:"),
        *("password: x", "-----BEGIN A ", "gh", "xox", "AccountKey=", "Bearer ", "key key key "),
    ],
)
def test_a_megabyte_of_beginnings_of_secrets_is_looked_through(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))  # in quadratic time this would not end within the test's limit
    assert len(list(secrets(text))) <= MAX_SPANS


@pytest.mark.control("CFG-02")
@pytest.mark.parametrize("end", ["-----END PRIVATE KEY-----", ""])
def test_the_body_of_a_private_key_is_masked_with_its_head(end: str) -> None:
    body = "MC4CAQAwBQYDK2VwBCIEIABCDEFGHIJKLMNOPQRSTUV"
    assert body[:12] not in shown(f"x -----BEGIN PRIVATE KEY-----{body}{end} y")
