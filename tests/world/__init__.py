"""A simulated GitHub that answers real HTTP and real git to real clients."""

from tests.world.deliveries import Delivery
from tests.world.gitrepo import Files, Link
from tests.world.repository import Repository
from tests.world.state import App, Comment, Installation, User
from tests.world.threads import Issue, Pull
from tests.world.world import Posted, World

__all__ = [
    "App", "Comment", "Delivery", "Files", "Installation", "Issue", "Link", "Posted", "Pull", "Repository", "User",
    "World",
]  # fmt: skip
