"""The experiments of the NAPSU-MQ paper: do intervals from a release's draws hold the truth as often as they say?"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the programs beside this folder are no package
