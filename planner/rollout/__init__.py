"""From a decision to ordered steps: start new, await ready, await settled, stop old. Building has no side effects."""
