"""Recorded load, played again under several scaling policies in one simulated group: what each would have cost."""
