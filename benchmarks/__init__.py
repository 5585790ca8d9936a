"""Measurements, not tests: ``make bench`` prints figures and ratios; nothing here can fail a build."""
