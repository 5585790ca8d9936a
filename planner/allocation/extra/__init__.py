"""Strategies of ours, beyond the client jar; each has its Java class in ``examples/java/`` and a page in docs."""

from planner.allocation.extra.specified_machine import SpecifiedMachine
from planner.allocation.extra.static import Static
from planner.allocation.extra.vip import Vip

__all__ = ["SpecifiedMachine", "Static", "Vip"]
