"""The style sheet of a page: light, dark, phone and print."""

SERIES = 8
"""Number of colours for curves; similar to the Okabe-Ito palette, which is safe for colour-blind readers."""

STYLE = """
:root {
  --paper: #ffffff; --ink: #1c2430; --quiet: #586374; --line: #d4dae2; --panel: #f4f6f9; --link: #0b5cad;
  --good: #0a6640; --bad: #a3221c; --open: #7a5200;
  --series-0: #0b66b0; --series-1: #c24d00; --series-2: #00795a; --series-3: #a8417c;
  --series-4: #8a6a00; --series-5: #2b8fc4; --series-6: #1c2430; --series-7: #7a7f87;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181f; --ink: #e6eaf0; --quiet: #a3aebd; --line: #38414e; --panel: #1d232c; --link: #7cbcf5;
    --good: #5fd3a2; --bad: #ff9d94; --open: #f0c060;
    --series-0: #5db0f2; --series-1: #ff9152; --series-2: #3fcf9f; --series-3: #ec93c4;
    --series-4: #e8c245; --series-5: #9ad7f7; --series-6: #e6eaf0; --series-7: #8f98a5;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 2.5rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
p, ul { max-width: 46rem; }
li { margin: .2rem 0; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none; padding: 0; margin: 0 0 1rem;
  max-width: none; }
.note { background: var(--panel); border-left: 4px solid var(--quiet); padding: .6rem .9rem; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.numbers > div { background: var(--panel); border-radius: 8px; padding: .7rem .9rem; }
.numbers dt { color: var(--quiet); font-size: .85rem; line-height: 1.3; }
.numbers dd { margin: .15rem 0 0; font-size: 1.35rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--line); border-radius: 8px; }
.scroll:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .6rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-top: 1px solid var(--line); }
th { font-weight: 600; }
thead th { background: var(--panel); vertical-align: bottom; }
th.number, td.number { text-align: right; white-space: nowrap; }
th[scope=row] { min-width: 6.5rem; }
td:nth-child(2):last-child { width: 62%; }
thead th.number { white-space: normal; }
.badge { display: inline-block; font-weight: 650; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 1rem 0; max-width: 32rem; }
.plot svg { display: block; width: 100%; height: auto; }
.plot text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
figcaption { color: var(--quiet); font-size: .88rem; line-height: 1.4; margin-top: .4rem; }
@media (max-width: 40rem) {
  main { padding: 1rem .75rem 3rem; }
  h1 { font-size: 1.4rem; }
  th, td { padding: .4rem .5rem; }
  caption { max-width: calc(100vw - 2.5rem); }
  .stacked thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .stacked tr { display: block; border-top: 1px solid var(--line); padding: .5rem .25rem; }
  .stacked th, .stacked td { display: block; border: 0; padding: .1rem .5rem; }
  .stacked th.number, .stacked td.number { text-align: left; white-space: normal; }
  .stacked [data-heading]::before { content: attr(data-heading) " "; color: var(--quiet); }
}
@media print {
  :root {
    --paper: #ffffff; --ink: #000000; --quiet: #444444; --line: #bbbbbb; --panel: #f2f2f2; --link: #000000;
    --good: #0a6640; --bad: #a3221c; --open: #7a5200;
    --series-0: #0b66b0; --series-1: #c24d00; --series-2: #00795a; --series-3: #a8417c;
    --series-4: #8a6a00; --series-5: #2b8fc4; --series-6: #000000; --series-7: #7a7f87;
  }
  @page { margin: 1.5cm; }
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  .scroll { overflow: visible; border: 0; }
  table { font-size: 7.5pt; }
  th, td { padding: 2pt 3pt; }
  th.number, td.number { white-space: normal; }
  .figures { grid-template-columns: 1fr 1fr; }
  figure { max-width: 11cm; }
  figcaption { font-size: 8pt; }
  figure, tr, .note { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""
