"""First: the document of a request, read and checked: clients, queues, settings, and what changes."""
