"""Config, session, evaluation: what makes two parties and a channel into a run."""
