"""How an approved plan is carried out: phases, progress, drift, and the engine that decides one move a turn. Pure."""
