"""One request opened up: what its clock wrote down, as spans and as points."""
