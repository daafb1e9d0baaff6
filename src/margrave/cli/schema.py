"""``margrave schema draft`` and ``margrave schema check``."""

from __future__ import annotations

import click
from rich.markup import escape
from rich.table import Table

from margrave.cli.options import echo_json, json_option, load_schema, overwrite_option, schema_option
from margrave.cli.output import check_outputs, console
from margrave.files import written_whole
