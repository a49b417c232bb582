"""From a user's file to a program graph: import, inputs, tracing, conversion."""
