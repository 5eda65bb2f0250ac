"""The style of the pages: on screen, light or dark, and on paper."""

from __future__ import annotations

from html import escape

_LIGHT = """
--page: #f6f7f9; --card: #ffffff; --ink: #1b2330; --soft: #5b6675; --line: #dfe4ea; --track: #eaeef2;
--busy: #2f6fb7; --idle: #d9822b; --share: #7d8ca0; --peak: #1b2330; --hatch: #c4ccd6; --call: #fff5e8; --bad: #b3382c;
--warn: #a35200;
"""
_DARK = """
--page: #12161c; --card: #1a2029; --ink: #e7ebf0; --soft: #9aa6b5; --line: #303947; --track: #28303c;
--busy: #5b9be0; --idle: #f0a24e; --share: #8593a6; --peak: #f2f5f8; --hatch: #465162; --call: #2d2417; --bad: #f07f73;
--warn: #f0a24e;
"""
STYLE = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans",
  sans-serif; }}
main {{ max-width: 1120px; margin: 0 auto; padding: 28px 20px 48px; }}
h1 {{ font-size: 27px; margin: 0 0 4px; overflow-wrap: anywhere; }}
h2 {{ font-size: 17px; margin: 0 0 10px; }}
p {{ margin: 0 0 8px; color: var(--soft); overflow-wrap: anywhere; }}
section, .tiles > div, .call {{ background: var(--card); border: 1px solid var(--line); border-radius: 10px; }}
section, .call {{ padding: 18px 20px; margin-top: 16px; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 12px; margin-top: 18px; }}
.tiles > div {{ padding: 14px 16px; }}
.tiles b {{ display: block; font-size: 24px; font-variant-numeric: tabular-nums; }}
.tiles span {{ color: var(--soft); font-size: 13px; }}
.call {{ background: var(--call); border-left: 5px solid var(--idle); }}
.call.none {{ border-left-color: var(--busy); background: var(--card); }}
.site {{ background: var(--call); color: var(--warn); border: 1px solid var(--warn); border-radius: 10px;
  font-weight: 600; padding: 8px 14px; margin-bottom: 14px; }}
ul {{ margin: 0; padding-left: 20px; }}
li {{ overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; }}
svg {{ display: block; width: 100%; min-width: 720px; height: auto; }}
svg text {{ fill: var(--ink); font-size: 12px; font-variant-numeric: tabular-nums; }}
svg .name {{ text-anchor: end; }}
svg .head {{ font-weight: 600; }}
svg .tick {{ fill: var(--soft); text-anchor: middle; font-size: 11px; }}
svg .grid {{ stroke: var(--line); }}
svg .track {{ fill: var(--track); }}
svg .bar {{ fill: var(--busy); }}
svg .idle .bar {{ fill: var(--idle); }}
svg .peak {{ stroke: var(--peak); stroke-width: 2; }}
svg .share {{ fill: var(--share); }}
svg .hatch {{ stroke: var(--hatch); stroke-width: 2; }}
svg .hollow {{ fill: none; stroke: var(--share); stroke-dasharray: 4 3; }}
svg .unassigned .hollow {{ fill: url(#hatch); stroke: var(--hatch); stroke-dasharray: none; }}
svg .unreachable .name {{ fill: var(--bad); }}
figure {{ margin: 0; }}
.legend {{ display: flex; flex-wrap: wrap; gap: 18px; margin: 10px 0 0; font-size: 13px; }}
.legend i {{ display: inline-block; width: 22px; height: 11px; margin-right: 7px; border-radius: 3px;
  background: var(--busy); }}
.legend .idle i {{ background: var(--idle); }}
.legend .not-measured i {{ background: none; border: 1px dashed var(--share); }}
.legend .unassigned i {{ background: repeating-linear-gradient(135deg, var(--hatch) 0 2px, transparent 2px 5px);
  border: 1px solid var(--hatch); }}
table {{ border-collapse: collapse; width: 100%; font-size: 13px; }}
th, td {{ text-align: left; padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; }}
th {{ color: var(--soft); font-weight: 600; white-space: nowrap; }}
td {{ overflow-wrap: break-word; }}
td:last-child:not(.number), td:first-child {{ overflow-wrap: anywhere; min-width: 90px; }}
.short {{ white-space: nowrap; }}
.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
tfoot td {{ font-weight: 600; border-bottom: 0; }}
tr.idle td:first-child, tr.unassigned td:first-child {{ color: var(--warn); font-weight: 600; }}
tr.unreachable td:first-child {{ color: var(--bad); font-weight: 600; }}
@page {{ size: A4 landscape; margin: 12mm; }}
@media print {{
  body {{ font-size: 13px; }}
  table {{ font-size: 11px; }}
  th, td {{ padding: 4px 6px 4px 0; }}
  svg {{ min-width: 0; }}
  section, .call {{ padding: 0; border: 0; margin-top: 14px; }}
  :root {{ color-scheme: light; {_LIGHT} --page: #ffffff; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  main {{ max-width: none; padding: 0; }}
  p, table, figure, svg, tr, li, .tiles > div {{ break-inside: avoid; }}
  h1, h2, h3, h2 + p, h3 + p, figcaption {{ break-after: avoid; }}
  .wide + p {{ break-before: avoid; }}
  thead {{ display: table-header-group; }}
  .wide {{ overflow: visible; }}
}}
"""
# A page whose tables have few columns.
PORTRAIT = """
@page { size: A4 portrait; }
@media print { .figures { grid-template-columns: 1fr 1fr 1fr; } .figures.pairs { grid-template-columns: 1fr 1fr; } }
"""


def site_banner(site: str) -> str:
    """Return a caution about the site, such as that it is simulated, as the first line of a page; empty for none."""
    return f'<p class="site">{escape(site)}</p>' if site else ""
