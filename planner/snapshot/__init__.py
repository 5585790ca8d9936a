"""From history and the newest sample to one ``GroupSnapshot``: what is true, as of when, how complete."""
