"""What each one takes, and who takes it."""

from typing import Generic, TypeVar

User = TypeVar("User")
Place = TypeVar("Place")


class Index(Generic[User, Place]):
    """Places by their users and users by their places, without empty sets."""

    def __init__(self) -> None:
        self._places: dict[User, frozenset[Place]] = {}
        self._users: dict[Place, set[User]] = {}

    def put(self, user: User, places: frozenset[Place]) -> None:
        """Have a user take just these places; empty: none any more."""
        for place in self._places.pop(user, frozenset()):
            self._users[place].discard(user)
            if not self._users[place]:
                del self._users[place]
        if places:
            self._places[user] = places
        for place in places:
            self._users.setdefault(place, set()).add(user)

    def places(self, user: User) -> frozenset[Place]:
        """Return what a user takes."""
        return self._places.get(user, frozenset())

    def users(self, place: Place) -> frozenset[User]:
        """Return who takes a place."""
        return frozenset(self._users.get(place, ()))
