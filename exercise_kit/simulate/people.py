"""Names of invented students, in several scripts, and what they write beside their code."""

from __future__ import annotations

import random
from collections.abc import Sequence

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

COMMENTS = (
    "# I checked this with the example in the docstring",
    "# TODO: ask in the next session whether the order matters",
    "# not sure about the last axis",
    "# took me two hours ...",
    "# works on my machine :)",
    "# see my notes from the lecture, page 3",
    "# geht das auch kürzer?",
    "# версия 3, теперь правильно",
    "# 这样对吗？",
    "# à revoir : pourquoi transpose ?",
)
SHORT_ANSWERS = (
    "Because the cost grows with the square of the number of tokens, so twice as many tokens are four times the work.",
    "I think it would still learn, only slower. I did not have time to run the experiment twice.",
    "Das Modell sieht dann nicht mehr, *wo* ein Patch liegt, nur noch, *dass* er da ist.",
    "Не уверена, но думаю, что дело в порядке осей.",
    "Otherwise $\\sqrt{d}$ would be too large and the softmax saturates.",
    "我认为是因为它们的尺度不同。",
    "no idea, sorry",
)


def names(count: int, draw: random.Random) -> list[str]:
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
