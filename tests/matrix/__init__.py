"""The truth matrix: what the planner answers about real groups, compared with what is known of them.

A *cell* is one group: a client with default settings, a service time, a load and so on. ``recording`` runs cells on
real brokers and keeps the samples that ``planner.sources.live`` reads; ``judging`` compares the planner's answers with
the cell's truth, without brokers, so that recorded cells can be judged again after each change of a rule.
"""
