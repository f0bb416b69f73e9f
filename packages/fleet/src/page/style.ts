/** Colours follow what the person's system asks for. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1f2933; --quiet: #5f6b7a; --paper: #fff; --panel: #f4f6f8; --line: #d9dee4; --link: #2b5fc7;
  --ready: #2f855a; --notReady: #c53030; --off: #a0aec0; --failed: #702459; --pods: #2b6cb0; --chosen: #dd6b20 }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --quiet: #97a3b3; --paper: #14181d; --panel: #1e242b; --line: #333c47;
  --link: #8ab4ff; --ready: #3fa56f; --notReady: #f26464; --off: #5b6675; --failed: #c06ab0; --pods: #63a8f0; --chosen: #f6993f } }
body { font: 14px system-ui, sans-serif; margin: 1rem; color: var(--ink); background: var(--paper) }
h1 { font-size: 1.1rem; margin: 0 0 .6rem } h2 { font-size: 1rem; margin: 1rem 0 .3rem }
.bar { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin: .5rem 0 }
.quiet { color: var(--quiet) } #lost { color: var(--notReady) }
input, select, button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 4px; padding: .15rem .45rem }
button { cursor: pointer } button[aria-pressed=true] { outline: 2px solid var(--link) }
.key::before { content: ''; display: inline-block; width: .7em; height: .7em; margin-right: .4em; background: var(--of) }
canvas { display: block; width: 100%; cursor: pointer } canvas:focus { outline: 2px solid var(--link) }
#facts { display: flex; flex-wrap: wrap; gap: 0 2.5rem } td { padding-right: 1rem; vertical-align: top } td + td { font-variant-numeric: tabular-nums }
a { color: var(--link) } pre { max-height: 60vh; overflow: auto; background: var(--panel); padding: .5rem }
svg { width: 100%; display: block; background: var(--panel) } svg text { fill: var(--ink); font-size: 11px; paint-order: stroke; stroke: var(--panel); stroke-width: 3px }
#text, #label { width: 9rem }
ol { margin: .3rem 0; padding-left: 1.4rem } .bad { color: var(--notReady) } .good { color: var(--ready) }
`;
