"""What the judge knows: drawing inputs, comparing arrays, reading programs, giving verdicts."""
