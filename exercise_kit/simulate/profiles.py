"""Who is in a simulated class, and what each of them hands in: drawn from shares that resemble a class.

Students are of five sorts, in the shares of :data:`PROFILES`; for each exercise a student's kind of answer is drawn
with the weights of their sort. Which misconception it is follows a law of few that are common and many that are rare
(weight 1 / rank), in an order that is drawn for each exercise. Everything follows from the seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Misconception
from exercise_kit.simulate.answer_pool import AnswerPool, LessonPools
from exercise_kit.simulate.answers import Kind, Outcome, SimulatedAnswer

_Any = TypeVar("_Any")


@dataclass(frozen=True)
class StudentProfile:
    """A kind of student.

    Attributes:
        name: of the kind.
        share: of the class.
        weights: of the kinds of their answers.
        fades: whether they stop writing at some exercise.
        late: the share of their work that is late.
        silent: the share of questions that they leave unanswered.
    """

    name: str
    share: float
    weights: Mapping[Kind, float] = field(repr=False)
    fades: bool = False
    late: float = 0.04
    silent: float = 0.1


def _make_kind_weights(
    right: float, misconception: float, two: float, unwritten: float, crashing: float
) -> dict[Kind, float]:
    wrong = {Kind.MISCONCEPTION: misconception, Kind.TWO: two, Kind.UNWRITTEN: unwritten, Kind.CRASHING: crashing}
    return {Kind.RIGHT: right, **wrong}


HOSTILE = "hostile"
PROFILES: Sequence[StudentProfile] = (
    StudentProfile("strong", 0.28, _make_kind_weights(93, 5, 0, 1, 1), silent=0.02),
    StudentProfile("steady", 0.41, _make_kind_weights(68, 21, 4, 4, 3)),
    StudentProfile("struggling", 0.20, _make_kind_weights(30, 38, 12, 12, 8), late=0.15, silent=0.3),
    StudentProfile("gives up", 0.08, _make_kind_weights(50, 25, 5, 15, 5), fades=True, late=0.2, silent=0.6),
    StudentProfile(HOSTILE, 0.03, _make_kind_weights(40, 40, 5, 12, 3), silent=0.5),
)
# of those who are right: as the lesson's own answer stands, in other words, in another way
_RIGHT = {"model answer": 4, "model answer in other words": 48}
_OTHER_WAYS = 48
# of some mistakes no cell can be made, and of two one may hide the other: then others are drawn
_TRIES = 5


def draw_profiles(count: int, draw: random.Random) -> list[StudentProfile]:
    """The sort of each student: as near to the shares as whole students allow, in an order that is drawn.

    Of six students or more one is hostile.
    """
    exact = {sort.name: sort.share * count for sort in PROFILES}
    whole = {name: int(share) for name, share in exact.items()}
    if count >= 6:
        whole[HOSTILE] = max(whole[HOSTILE], 1)
    by_rest = sorted(PROFILES, key=lambda sort: whole[sort.name] - exact[sort.name])
    while sum(whole.values()) < count:
        for sort in by_rest[: count - sum(whole.values())]:
            whole[sort.name] += 1
    while sum(whole.values()) > count:
        whole[max(whole, key=lambda name: whole[name])] -= 1
    made = [sort for sort in PROFILES for _ in range(whole[sort.name])]
    draw.shuffle(made)
    return made


class Drawing:
    """Draws the answers to one lesson.

    Args:
        pools: the answers that there are.
        seed: of the class; each exercise's order of misconceptions follows from it.
    """

    def __init__(self, pools: LessonPools, seed: int) -> None:
        self._pools = pools
        self._mistakes = {name: _shuffle(pool.misconceptions, seed, name) for name, pool in pools.pools.items()}
        self._pairs = {name: _shuffle(pool.two, seed, name) for name, pool in pools.pools.items()}

    def answers(self, sort: StudentProfile, draw: random.Random) -> dict[str, SimulatedAnswer]:
        """A student's answers by exercise, in the lesson's order."""
        pools = self._pools.pools
        stops = draw.randrange(len(pools) + 1) if sort.fades else len(pools)
        attacked = self._choose_attacked_exercise(draw) if sort.name == HOSTILE else None
        given: dict[str, SimulatedAnswer] = {}
        for place, (name, pool) in enumerate(pools.items()):
            kind = draw.choices(list(sort.weights), list(sort.weights.values()))[0]
            if place >= stops:
                kind = Kind.UNWRITTEN
            answer = self._draw_hostile_answer(pool, draw) if name == attacked else self._draw_answer(pool, kind, draw)
            if answer.ends and any(each.ends for each in given.values()):
                answer = pool.unwritten[0]  # a notebook that ends many processes is not graded to its end
            if any(given[used].outcome != Outcome.PASSES for used in answer.uses if used in given):
                answer = pool.make_self_contained(answer)
            given[name] = answer
        return given

    def _draw_answer(self, pool: AnswerPool, kind: Kind, draw: random.Random) -> SimulatedAnswer:
        """An answer of a kind; where the exercise has none of it, one that is not written."""
        if kind == Kind.RIGHT and pool.right:
            return self._draw_right_answer(pool.right, draw)
        if kind == Kind.TWO and (
            pair := _draw_first_possible_answer(pool.answer_with_pair, self._pairs[pool.exercise.name], draw)
        ):
            return pair
        if kind in (Kind.MISCONCEPTION, Kind.TWO) and (mistake := self._draw_mistaken_answer(pool, draw)):
            return mistake
        if kind == Kind.CRASHING and pool.crashing:
            return draw.choice(pool.crashing)
        return pool.unwritten[0]

    def _draw_right_answer(self, right_answers: Sequence[SimulatedAnswer], draw: random.Random) -> SimulatedAnswer:
        others = sum(each.name not in _RIGHT for each in right_answers)
        return draw.choices(
            right_answers, [_RIGHT.get(each.name, _OTHER_WAYS / max(others, 1)) for each in right_answers]
        )[0]

    def _draw_mistaken_answer(self, pool: AnswerPool, draw: random.Random) -> SimulatedAnswer | None:
        return _draw_first_possible_answer(pool.answer_with_mistake, self._mistakes[pool.exercise.name], draw)

    def _choose_attacked_exercise(self, draw: random.Random) -> str | None:
        """The exercise that a hostile student attacks; None where there is none that can be."""
        pools, rules = self._pools.pools, course().rules
        can = [name for name, pool in pools.items() if pool.misconceptions and name not in rules]
        return draw.choice(can) if can else None

    def _draw_hostile_answer(self, pool: AnswerPool, draw: random.Random) -> SimulatedAnswer:
        mistake = self._draw_mistaken_answer(pool, draw)
        return draw.choice(pool.hostile(mistake)) if mistake else pool.unwritten[0]


def _shuffle(items: Sequence[_Any], seed: int, name: str) -> list[_Any]:
    shuffled = list(items)
    random.Random(f"{seed} {name}").shuffle(shuffled)  # a rehearsal, no secret
    return shuffled


def _draw_first_possible_answer(
    make_answer: Callable[[Misconception], SimulatedAnswer | None],
    mistakes: Sequence[Misconception],
    draw: random.Random,
) -> SimulatedAnswer | None:
    """The first of a few draws of which an answer can be made."""
    tried = (make_answer(_draw_by_rank(mistakes, draw)) for _ in range(_TRIES if mistakes else 0))
    return next((each for each in tried if each is not None), None)


def _draw_by_rank(items: Sequence[_Any], draw: random.Random) -> _Any:
    return draw.choices(items, [1 / (1 + rank) for rank in range(len(items))])[0]


# given names and family names that go together, as folders are named: "Given Family"
_NAMES: Sequence[tuple[str, str]] = (
    ("Ada Ben Clara Dorian Edith Felix Grace Hugo Iris Jonas", "Archer Baker Cole Dunn Ellis Frost Gray Hale Ingram"),
    ("Zoë Jürgen Åse Øyvind Siân Łukasz Çağla Ondřej Ñusta", "Müller Şahin Čapek Brånås Ólafsson Nuñez Wójcik Lefèvre"),
    ("Анна Борис Вера Григорий Дарья Лев Ольга Юрий", "Волков Зайцев Ким Лебедев Орлов Соколов Чайка"),
    ("Ελένη Γιώργος Νίκη Σωτήρης Χλόη", "Αλεξίου Βλάχος Δήμου Καλλέργης Ξένος"),
    ("اليسار بشير جميلة سامي هدى", "الحداد خوري زيدان منصور نجار"),
    ("דנה יונתן מיכל נועם תמר", "אלון ברק כהן לוי שקד"),
    ("अनिता किरण मीरा रवि सुनील", "जोशी पटेल मेहता राव शर्मा"),
    ("明 小红 美玲 志强 思远", "王 李 张 陈 林"),
    ("さくら 健太 美咲 翔", "佐藤 鈴木 高橋 田中"),
    ("지은 민준 서연 하늘", "김 박 이 최"),
    ("สมชาย กานดา มาลี", "แสงทอง ใจดี สุขสม"),
    ("Nguyễn Phạm Trần", "Thị Hoa;Văn Minh;Quang Huy"),
)
# half a class writes with Latin letters
_WEIGHTS = (12, 8, 3, 2, 2, 2, 3, 4, 2, 2, 1, 2)


def draw_names(count: int, draw: random.Random) -> list[str]:
    """So many different names, which are the names of folders too; the same draws give the same names."""
    taken: dict[str, None] = {}
    while len(taken) < count:
        given, family = draw.choices(_NAMES, _WEIGHTS)[0]
        name = f"{draw.choice(given.split())} {draw.choice(family.split(';') if ';' in family else family.split())}"
        number = 2
        while name in taken and number < 2 + len(taken):
            name, number = f"{name.rstrip('0123456789 ')} {number}", number + 1
        taken[name] = None
    return list(taken)
