"""The causal nodes of a subtree: a node's own role and those its children reported."""

from roamcast.causal import Role

RoleList = tuple[tuple[int, Role], ...]


class Roles:
    def __init__(self) -> None:
        self.own: RoleList = ()
        self.reported: RoleList = ()  # what the parent was last told
        self._children: dict[int, RoleList] = {}

    def put(self, child: int, roles: RoleList) -> bool:
        """Takes in a child's report; true if it is new."""
        if self._children.get(child, ()) == roles:
            return False
        self._children[child] = roles
        return True

    def drop(self, child: int) -> bool:
        """True if that child had reported causal nodes."""
        return bool(self._children.pop(child, ()))

    def all(self) -> RoleList:
        """Every causal node of the subtree with its role, by address."""
        merged = dict(self.own)
        for roles in self._children.values():
            merged.update(roles)
        return tuple(sorted(merged.items(), key=lambda item: item[0]))
