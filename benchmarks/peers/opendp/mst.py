"""MST by OpenDP's mbi extra at its defaults."""

from __future__ import annotations

import opendp.prelude as dp
from job import Job
from shared import synthesize

if __name__ == "__main__":
    synthesize(Job.from_command_line(), dp.mbi.MST())
