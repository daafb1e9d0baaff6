"""The experiments of "Iterative Methods for Private Synthetic Data" (Liu, Vietri, Wu 2021) on margrave's mechanisms."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the programs beside this folder are no package
