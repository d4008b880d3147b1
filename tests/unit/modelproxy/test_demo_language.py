"""Which language the demo model answers in: German for German, English for every other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.modelproxy import demo_words
from runtime.modelproxy.demo import ENGLISH, GERMAN, respond
from runtime.modelproxy.demo_conversation import Conversation
from runtime.modelproxy.demo_language import OTHERS, SHARED
from runtime.modelproxy.messages_sse import Text

QUESTIONS = {
    "Spanish": (
        "¿Cuándo es la próxima cosecha?",
        "¿Quién es Begoña?",
        "¿Dónde está la oficina?",
        "¿Es verdad?",
        "Es Ada",
    ),
    "French": (
        "Qui est Ada ?",
        "Où es-tu né ?",
        "Quand as-tu parlé des machines hier ?",
        "Parle-moi du prix",
        "Du pain ?",
    ),
    "Portuguese": (
        "Quem é você?",
        "Onde fica o escritório das vendas?",
        "Tu es a Ada?",
        "Há um livro para uns amigos?",
        "As horas das visitas?",
    ),
    "Italian": ("Chi è Ada?", "Da dove vieni?", "Quando è in ufficio?", "Che ora è?", "So che sei in casa"),
    "Dutch": (
        "Wie is Ada?",
        "Wie was de man die er woonde?",
        "Waar is het kantoor?",
        "Was er nog hoop?",
        "Wie die man?",
        "Hoe laat ben je er?",
    ),
    "Swedish": (
        "Vem är du?",
        "Var bor du och när är du där?",
        "Vad kostar den?",
        "Har du en bok?",
        "Du, var är den man?",
    ),
    "Polish": ("Kim jest Ada?", "Gdzie jest biuro?", "Co to ja mam im dać?", "Ile to kosztuje?"),
    "English": (
        "Who is Ada?",
        "Was she an author?",
        "Will he die in war?",
        "So, what was in the hat?",
        "Am I in a bin?",
    ),
}
IN_GERMAN = (
    "Wer ist Ada?",
    "Wann sind die Sprechstunden?",
    "Wie war es?",
    "Was ist Note G?",
    "Worüber hat sie geschrieben?",
    "Wo wohnt Ada?",
    "Welche Bücher gibt es?",
    "Warum?",
    "Was war die Maschine?",
    "Öffnungszeiten?",
    "Wie heißt du und wo ist das Büro?",
    "Wann hat Ada Zeit?",
    "Hast du einen Termin für mich?",
)


def answered_in(question: str) -> str:
    (text,) = respond(Conversation(question=question))
    assert isinstance(text, Text)
    return {GERMAN["demo"]: "German", ENGLISH["demo"]: "English"}[text.text.rpartition("\n\n")[2]]


@pytest.mark.parametrize("question", [one for questions in QUESTIONS.values() for one in questions])
def test_a_question_in_another_language_than_german_is_answered_in_english(question: str) -> None:
    assert answered_in(question) == "English"


@pytest.mark.parametrize("question", IN_GERMAN)
def test_a_german_question_is_answered_in_german(question: str) -> None:
    assert answered_in(question) == "German"


@given(
    language=st.sampled_from(sorted(OTHERS)),
    data=st.data(),
    name=st.sampled_from(["", "Ada", "Begoña", "Zürich", "42"]),
)
def test_no_sentence_of_another_languages_small_words_is_german(
    language: str, data: st.DataObject, name: str
) -> None:
    spoken = data.draw(st.lists(st.sampled_from(sorted(OTHERS[language])), min_size=1, max_size=8))
    assert not demo_words.is_german(" ".join([*spoken, name]))


@given(st.lists(st.sampled_from(sorted(demo_words.STOP_DE - SHARED)), min_size=1, max_size=8))
def test_words_that_only_german_has_are_german(spoken: list[str]) -> None:
    assert demo_words.is_german(" ".join(spoken))


@given(st.sampled_from(sorted(SHARED)), st.sampled_from(["Ada", "Babbage", "Note G"]))
def test_one_word_that_german_shares_is_not_german(word: str, name: str) -> None:
    assert not demo_words.is_german(f"{word} {name}?")


def test_the_shared_words_are_german_words_that_another_language_has_too() -> None:
    others = frozenset().union(*OTHERS.values(), demo_words.STOP_EN)
    assert demo_words.STOP_DE >= SHARED
    assert (demo_words.STOP_DE & others) <= SHARED
