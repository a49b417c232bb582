"""What a job's process does, one module per role. Runs isolated; its only way out is its result pipe."""
