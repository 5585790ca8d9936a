"""Who owns what: allocation strategies exactly as the real clients compute them."""
