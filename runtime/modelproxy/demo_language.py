"""Guess whether a question is German. Pure; it knows the small words of nine languages and nothing else.

The demo model answers in English or in German. A question in any other language gets English, so the guess
must not be misled by the small words that German shares with its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARED: Final = frozenset(
    """
    als am an bin da das dem den der des die dies dir doch du ein er es hat hier ich im in ja man noch
    sein so um uns war waren was wen wer wie will
    """.split()  # noqa: SIM905  a paragraph of words reads better than a column of them
)  # German words that another language writes too: one of them alone says nothing
ENGLISH_TOO: Final = frozenset(
    {"bin", "den", "die", "dies", "hat", "man", "war"}
)  # small in German, not in English
OTHERS: Final[Mapping[str, frozenset[str]]] = {
    "Spanish": frozenset(
        """
        a al algo cómo como con cuál cuando cuándo cuánto cuántos da das de del dime dirección dónde e
        el ella en era es esta está este esto fue ha han hay la las le lo los me mi no nos o para pero
        por porque puede qué que quién quien quiénes se ser si sin sobre son su sus te tiene tu un una
        unos y ya
        """.split()  # noqa: SIM905  as above
    ),
    "French": frozenset(
        """
        a à ai as au aux avec ce ces cette comment combien d dans de des du elle elles en es est et être
        eu fait hier ici il ils j je l la le les leur lui ma mais me mes moi mon n ne nous on ou où par
        pas peut peux pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si
        son sont sur ta te tu un une vos votre vous
        """.split()  # noqa: SIM905  as above
    ),
    "Portuguese": frozenset(
        """
        a ao aos as com como da das de do dos e é ela ele em era es esta está este eu fica foi há isso
        já mais me meu minha na não nas no nos o onde os ou para pela pelo pode por porquê porque posso
        qual quais quando quanto que quem se sem ser seu seus são sobre sua também te tem um uma uns
        você
        """.split()  # noqa: SIM905  as above
    ),
    "Italian": frozenset(
        """
        a ai al alla anche che chi ci ciò come con cosa cui da dal dalla dei del della delle di do dove
        e è ed era essere fa gli ha hai hanno i il in io la le lei lo loro lui ma man mi mia mio nel
        nella noi non o per perché più può quale quali quando quanto quanti questo qui se sei si so sono
        su sua suo tra tu un una uno
        """.split()  # noqa: SIM905  as above
    ),
    "Dutch": frozenset(
        """
        aan af al als bij bent ben dan dat de den der des deze die dit doe doen door e een en er geen
        geweest had hebben hebt heb heeft hem het hij hier hoe hoeveel hun ik in is ja jaar je jij kan
        kun kunt maar man me meer men met mijn mij na naar niet nog nu of om onder ons ook op over staat
        te tot u uit uw van voor waar waarom wanneer want waren was wat we wel welk welke wie wij
        wil word worden wordt zal ze zich zij zijn zo zou
        """.split()  # noqa: SIM905  as above
    ),
    "Polish": frozenset(
        """
        a ale był była być co czy dla do gdy gdzie go i ich ile ja jak jaka jaki jakie jest już kiedy
        kim kto która które który ma mam mi na nie o od on ona po przez są się ten to tu w we z za ze że
        """.split()  # noqa: SIM905  as above
    ),
    "Swedish": frozenset(
        """
        att av blev de dem den der det du där efter eller en er ett för från får går ha han har hon hur
        här i in inte jag ja kan man med men mig min mitt mot någon när och om på sig sin ska som så
        till um under upp ut var vad varför vem vi vilka vilken vill
        """.split()  # noqa: SIM905  as above
    ),
}


def reads_german(spoken: Sequence[str], german: Sequence[str], english: frozenset[str]) -> bool:
    """Whether a question of the words `spoken` is German, given those of them that German has.

    It takes two of them, or one that no other language writes ("es" is Spanish, "die" Dutch), and more of
    them than of any other language's; `english` are the small words of English.
    """
    if len(german) < 2 and SHARED.issuperset(german):
        return False
    if any(word in english and word not in german for word in spoken):
        english |= ENGLISH_TOO
    return all(len(german) > sum(word in small for word in spoken) for small in (english, *OTHERS.values()))
