"""Scripts that run one library each, in an environment of its own."""
