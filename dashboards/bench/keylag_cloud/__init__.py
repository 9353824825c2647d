"""The parts of the benchmark of a large cloud."""
