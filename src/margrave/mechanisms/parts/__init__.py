"""Parts that several mechanisms use."""
