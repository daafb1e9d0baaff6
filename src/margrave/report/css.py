"""The page's style: light and dark, wide and narrow, without a single outside file."""

STYLE = """
:root { color-scheme: light dark;
  --page: #faf9f6; --card: #ffffff; --ink: #1f2630; --soft: #5d6672; --line: #e2dfd8;
  --accent: #17697a; --bar: #9cc6cd; --noise: #b4552d; --warn: #9c1c1c; --good: #20693f; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14181d; --card: #1c2229; --ink: #e6e8ea; --soft: #9aa4af; --line: #303841;
  --accent: #5fb8c6; --bar: #2f6873; --noise: #f0a27a; --warn: #ff8f8f; --good: #7fd6a4; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 48px 24px 96px; }
h1, h2, h3 { font-family: ui-serif, Charter, "Iowan Old Style", Georgia, serif; line-height: 1.25; font-weight: 600; }
h1 { font-size: 2.1rem; margin: 0 0 .2em; }
h2 { font-size: 1.35rem; margin: 2.6em 0 .6em; padding-top: .9em; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0 0 .5em; overflow-wrap: anywhere; }
p { max-width: 70ch; margin: 0 0 1em; }
p.soft, .soft { color: var(--soft); font-size: .9rem; }
ul.limits { max-width: 70ch; padding-left: 1.2em; } ul.limits li { margin: .3em 0; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 99px; padding: .1em .8em;
  font-size: .85rem; font-weight: 600; color: var(--good); }
.alarm { border: 2px solid var(--warn); color: var(--warn); border-radius: 8px; padding: .8em 1em; font-weight: 700;
  margin: 1.2em 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 230px), 1fr)); gap: 12px; margin: 1.8em 0; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.tile { padding: 14px 16px; } .tile b { display: block; font-size: 1.35rem; font-weight: 600;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tile span { color: var(--soft); font-size: .85rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 310px), 1fr)); gap: 16px; }
.card { padding: 16px; } .card p { margin: .5em 0 0; }
p.doubt { color: var(--warn); font-size: .9rem; font-weight: 600; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .45em .9em; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; }
.share { display: block; height: 6px; border-radius: 3px; background: var(--accent); min-width: 1px;
  margin-top: .55em; }
details { margin: 1em 0; } summary { cursor: pointer; color: var(--accent); }
pre { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1em;
  font-size: .8rem; line-height: 1.45; }
svg { display: block; width: 100%; height: auto; font-size: 11.5px; font-family: inherit; }
svg text { fill: var(--soft); font-variant-numeric: tabular-nums; } svg .l, svg .v { text-anchor: end; }
svg .l { fill: var(--ink); }
svg .b { fill: var(--bar); }
svg .w { stroke: var(--noise); stroke-width: 1.6; fill: none; } svg .d { fill: var(--noise); }
svg .a { stroke: var(--line); } svg .h { fill: var(--accent); } svg .f { fill: none; stroke: var(--line); }
.key { display: inline-flex; gap: 1.4em; flex-wrap: wrap; color: var(--soft); font-size: .85rem; margin: 0 0 1em; }
.key i { display: inline-block;
  width: 14px; height: 10px; margin-right: .4em; border-radius: 2px; background: var(--bar); }
.key i.n { background: var(--noise); height: 2px; vertical-align: middle; }
footer { margin-top: 4em; color: var(--soft); font-size: .85rem; }
@media (max-width: 560px) { .tiles { grid-template-columns: 1fr 1fr; } main { padding: 28px 16px 64px; } h1 { font-size: 1.6rem; } th, td { padding: .4em .6em; } }
@media print { .card, .tile { break-inside: avoid; } details > * { display: block; } }
"""


def chart_style() -> str:
    """Return the style of a drawing by itself, which touches nothing else on its page."""
    colors = STYLE[STYLE.index(":root") : STYLE.index("* {")].replace(":root", "svg.margrave")
    rules = STYLE[STYLE.index("svg {") : STYLE.index(".key {")].replace("svg", "svg.margrave")
    return f"{colors}{rules}svg.margrave {{ background: var(--page); }}"
