"""What requests and changes of both systems share: fields, kinds of change, rolling updates, delays."""
