"""What each one takes, and who takes it."""

from typing import Generic, TypeVar

U = TypeVar("U")
P = TypeVar("P")


class Index(Generic[U, P]):
    """Places by their users and users by their places, without empty sets."""

    def __init__(self) -> None:
        self._places: dict[U, frozenset[P]] = {}
        self._users: dict[P, set[U]] = {}

    def put(self, user: U, places: frozenset[P]) -> None:
        """Have a user take just these places; empty: none any more."""
        for place in self._places.pop(user, frozenset()):
            self._users[place].discard(user)
            if not self._users[place]:
                del self._users[place]
        if places:
            self._places[user] = places
        for place in places:
            self._users.setdefault(place, set()).add(user)

    def places(self, user: U) -> frozenset[P]:
        """Return what a user takes."""
        return self._places.get(user, frozenset())

    def users(self, place: P) -> frozenset[U]:
        """Return who takes a place."""
        return frozenset(self._users.get(place, ()))
