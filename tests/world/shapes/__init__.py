"""How GitHub writes things down as JSON, in REST answers and in deliveries alike.

A test validates what these make against GitHub's published OpenAPI description and against its published examples.
"""

from tests.world.shapes.git import GitShapes
from tests.world.shapes.people import stamp
from tests.world.shapes.threads import ThreadShapes

__all__ = ["Shapes", "stamp"]


class Shapes(GitShapes, ThreadShapes):
    """`Shapes(api, web)`: all of them."""
