"""What the judge knows: how to draw inputs, compare arrays, read programs, and give the verdict of each gate."""
