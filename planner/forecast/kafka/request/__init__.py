"""First: the document of a request, read and checked: members, partitions, settings, and what changes."""
