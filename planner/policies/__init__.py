"""All policies of a run, each by itself: reading them, telling the cluster how each went, noticing what lasts."""
