"""``make soak``: a day of load in minutes, decided, approved, applied and judged by nobody's hand."""
