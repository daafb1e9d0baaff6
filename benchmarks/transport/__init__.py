"""The experiments of "Privacy-preserving data release leveraging optimal transport" (Donhauser et al. 2024)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the programs beside this folder are no package
