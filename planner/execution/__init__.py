"""How an approved plan is carried out: phases, progress, drift, an engine that decides one move a reconcile. Pure."""
