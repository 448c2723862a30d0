"""Objects made and dropped, one kind at a time: what `count` runs under callgrind.

    objects.py KIND ROUNDS

Each round makes BATCH objects, keeps them in a list, and drops them all. CPython keeps some dropped floats, tuples, lists
and dicts for the next ones (up to 100, 2000 of each length, 80 and 80); the batch is so large that most are freed. Ints are
above 256 and so never shared; those that count are below, always shared, and cost no call. What is made is what the
workload object-churn makes, in sizes and in steps.
"""

import sys

BATCH = 20_000


def draws():
    """Small numbers, as good as random and the same in each run."""
    state = 1
    while True:
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        yield state >> 16


# Drawn once: the difference between two counts has no drawing in it.
DRAWN = [number for _, number in zip(range(BATCH), draws())]


def ints():
    # One digit of 30 bits, then two.
    small = [1000 + number for number in DRAWN[: BATCH // 2]]
    large = [(1 << 40) + number for number in DRAWN[BATCH // 2 :]]
    return small, large


def floats():
    return [number + 0.5 for number in DRAWN]


def tuples():
    kept = []
    for number in DRAWN:
        match number & 3:
            case 0:
                kept.append((number,))
            case 1:
                kept.append((number, number))
            case 2:
                kept.append((number, number, number))
            case 3:
                kept.append((number, number, number, number))
    return kept


def lists():
    kept = []
    for number in DRAWN:
        grown = []
        left = 1 + (number & 15)
        while left:
            left -= 1
            grown.append(number)
        kept.append(grown)
    return kept


def dicts():
    kept = []
    for number in DRAWN:
        grown = {}
        left = 1 + (number & 31)
        while left:
            left -= 1
            grown[left] = number
        kept.append(grown)
    return kept


PIECES = ["x" * length for length in range(1, 17)]


def strings():
    kept = []
    for number in DRAWN:
        piece = PIECES[number & 15]
        # Two pieces make a string of their own; each other one makes it longer.
        built = piece + piece
        left = (number & 63) >> 4
        while left:
            left -= 1
            built += piece
        kept.append(built)
    return kept


class Thing:
    def __init__(self, number):
        self.first = number
        self.second = number
        self.third = number


def instances():
    kept = []
    for number in DRAWN:
        thing = Thing(number)
        # From 3.11 on the dict is made when somebody asks for it.
        thing.__dict__
        kept.append(thing)
    return kept


KINDS = {
    "ints": ints,
    "floats": floats,
    "tuples": tuples,
    "lists": lists,
    "dicts": dicts,
    "strings": strings,
    "instances": instances,
}

if __name__ == "__main__":
    make = KINDS[sys.argv[1]]
    for _ in range(int(sys.argv[2])):
        make()
