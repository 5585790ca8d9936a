"""What the apps share: the session, errors as one sentence, the history folder, policies as rows."""
