"""Other ways in, over the same calls: fit and sample, and the interface of SDV."""

from margrave.contrib.sdv import SDVSynthesizer, schema_of_sdv
from margrave.contrib.synthesizer import Synthesizer

__all__ = ["SDVSynthesizer", "Synthesizer", "schema_of_sdv"]
