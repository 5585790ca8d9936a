"""The real Java classes, asked directly: what they answer is what our strategies must answer."""
