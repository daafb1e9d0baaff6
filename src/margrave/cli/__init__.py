"""The command line: ``margrave schema | plan | synthesize | sample | evaluate | report | certificate``."""
