"""Joints to other libraries: fit and sample, the interface of SDV, events for accountants of dp_accounting."""

from margrave.contrib.events import dp_event
from margrave.contrib.sdv import SDVSynthesizer, schema_of_sdv
from margrave.contrib.synthesizer import Synthesizer

__all__ = ["SDVSynthesizer", "Synthesizer", "dp_event", "schema_of_sdv"]
