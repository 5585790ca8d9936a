"""A snapshot's group and the change to a candidate as a request of ``planner forecast``, one module a system."""

from planner.simulation.requests.ends import ENDS

__all__ = ["ENDS"]
