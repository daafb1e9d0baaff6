"""Wrong usage of the command line, in the form of margrave's errors: what is wrong, and a remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import click

from margrave.errors import InputError, did_you_mean


class Commands(click.Group):
    """A group that proposes a command for a misspelt one."""

    def other_form(self, word: str) -> str:
        """Return the command, with its arguments, that another word stands for; "" for none."""
        return ""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises:
            InputError: The name is unknown, or an option that takes one value is given several times.
        """
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            form = self.other_form(name)
            hint = f"Write {ctx.command_path} {form}. " if form else did_you_mean(name, known)
            raise InputError(
                f"{name[:60]!r} is not a command of {ctx.command_path}.",
                remedy=f"{hint}Its commands are: {', '.join(known)}.",
            )
        resolved = super().resolve_command(ctx, args)
        if resolved[1] is not None:
            refuse_repeats(resolved[1], ctx, resolved[2])
        return resolved


def refuse_repeats(
    command: click.Command, parent: click.Context | None, args: Sequence[str]
) -> None:
    """Raise ``InputError`` if the arguments of a command give an option that takes one value several times."""
    if isinstance(command, click.Group):
        return
    context = click.Context(
        command, parent=parent, resilient_parsing=True, ignore_unknown_options=True,
        help_option_names=["-h", "--help"],
    )  # fmt: skip
    given = command.make_parser(context).parse_args([*args])[2]
    for option in given:
        single = isinstance(option, click.Option) and not (option.multiple or option.is_flag)
        if single and given.count(option) > 1:
            flag = _flag(option, context)
            raise InputError(
                f"{flag} is given {given.count(option)} times, and takes one value.",
                remedy=_given_once(flag, option, args, command),
            )


def _given_once(
    flag: str, option: click.Parameter, args: Sequence[str], command: click.Command
) -> str:
    values = [b for a, b in pairwise(args) if a in option.opts]
    values += [a.removeprefix(f"{flag}=") for a in args if a.startswith(f"{flag}=")]
    if flag == "--by" and len(values) > 1:
        has_where = any("--where" in p.opts for p in command.params)
        write = "write" if has_where else "write margrave analyze mean RELEASE COLUMN"
        return (
            f"Give it once. For groups of two columns, {write} --by {values[0]} --where"
            f" {values[1]}=VALUE."
        )
    if option.make_metavar(click.Context(command)) in ("COLUMNS", "A,B"):
        return f"Give it once: {flag} {','.join(values)}."
    return "Give it once."


def usage_words(error: click.ClickException) -> tuple[str, str | None]:
    """Return what is wrong with a command line, and what to write instead."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.BadOptionUsage):
        name, wrong = error.option_name, error.format_message()
        if "does not take" in wrong:
            return wrong, f"Write {name} alone."
        return wrong, f"Write {'them' if 'arguments' in wrong else 'it'} behind {name}."
    if context is None:
        return error.format_message(), None
    parameter = getattr(error, "param", None)
    form = f"Write: {' '.join(context.get_usage().removeprefix('Usage:').split()).rstrip('.')}."
    if isinstance(error, click.MissingParameter) and parameter is not None:
        words = getattr(parameter, "help", None)
        remedy = f"Give it: {words[0].lower()}{words[1:]}" if words else form
        return f"{_flag(parameter, context)} is missing.", remedy
    if isinstance(error, click.NoSuchOption):
        return _no_option(error.option_name, context)
    if isinstance(error, click.BadParameter) and parameter is not None:
        return _bad_value(error.message, parameter, context)
    words = error.format_message().rstrip(".")
    if extra := re.search(r"unexpected extra arguments? \((.*)\)", words):
        form = f"{_for_extra(extra[1], context)} {form}"
    return f"{words}.", form


def _no_option(name: str, context: click.Context) -> tuple[str, str]:
    """Return what is wrong with an unknown option, and a remedy."""
    parameters = context.command.get_params(context)
    if re.match(r"-[\d.]", name) and any(p.name == "p" for p in parameters):
        return "P is negative.", "P lies between 0 and 1: 0.5 is the median."
    # Without their dashes, which all options share.
    words = [flag[2:] for p in parameters for flag in p.opts if flag[:2] == "--"]
    hint = did_you_mean(name.lstrip("-"), words).replace("mean '", "mean '--")
    if (name, context.command.name) == ("--where", "numbers"):
        hint = "For some records alone write: margrave analyze mean RELEASE COLUMN --where COLUMN=VALUE. "
    return (
        f"{context.command_path} has no option {name}.",
        f"{hint}See {context.command_path} --help.",
    )


def _for_extra(words: str, context: click.Context) -> str:
    """Return what the words may have been meant for that no option or argument took."""
    parameters = context.command.get_params(context)
    arguments = [p.make_metavar(context) for p in parameters if isinstance(p, click.Argument)]
    if not arguments:
        return f"Leave it out, or put a text with blanks in quotes: {context.command_path} takes options alone."
    options = {flag: p.type.name for p in parameters for flag in p.opts}
    if "--by" in options and (groups := re.fullmatch(r"by (\S+)", words)):
        return f"For groups write --by {groups[1]}."
    if words.endswith(".toml") and "--schema" in options:
        return f"Name the schema after --schema: --schema {words}."
    if arguments == ["RELEASE"] and words.endswith(".margrave"):
        return f"{context.command_path} takes one release: run it for each."
    if options.get("--columns") != "text":
        pattern = ", or a pattern of files," if "FILE" in arguments else ""
        return f"Put a text with blanks{pattern} in quotes."
    by = "--by takes one column. " if "--by" in options else ""
    return f"{by}Name the columns to show after --columns: --columns {','.join(words.split())}."


def _bad_value(
    message: str, parameter: click.Parameter, context: click.Context
) -> tuple[str, str | None]:
    flag = _flag(parameter, context)
    quoted = re.match(r"'(.*)' (is|does) not ", message, re.DOTALL)
    value = quoted[1] if quoted else ""
    if isinstance(parameter.type, click.Choice):
        known = [str(choice) for choice in parameter.type.choices]
        remedy = f"{did_you_mean(value, known)}It is one of: {', '.join(known)}."
        return f"{flag} is {value[:60]!r}.", remedy
    if isinstance(parameter.type, click.DateTime):
        return f"{flag} is {value[:60]!r}, which is not a day.", "Write it so: 2026-01-31."
    remedies = {
        "fraction": f"{flag} is {value[:60]!r}, which is not a number.",
        "float": f"{flag} is {value[:60]!r}, which is not a number.",
        "integer": f"{flag} is {value[:60]!r}, which is not a whole number.",
    }
    if parameter.type.name in remedies:
        examples = {"float": "0.5, with a decimal point", "fraction": "0.5 or 1/2"}
        example = examples.get(parameter.type.name, "10")
        return remedies[parameter.type.name], f"Give a number such as {example}."
    return f"{flag}: {message}", f"See {context.command_path} --help."


def _flag(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(context).strip("[]")
