"""Text in and out: figures in people's words, control characters made visible, bounds for what is read."""
