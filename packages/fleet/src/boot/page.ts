/** The overview page: a square for each node, pods by phase, calls of the API server, the slowest nodes. It only shows. */

import type { Listening } from '@actorlet/kubelet/ports/listening.ts';
import type { HttpReply, HttpRequest, Net } from '@actorlet/kubelet/ports/sockets/net.ts';
import type { Fleet } from '../fleet.ts';

const HTML_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:",
};
/** What is shown of one node; each is a question that changes nothing. */
const OF_NODE: readonly string[] = ['statez', 'why', 'pods', 'recorder'];
/** A page of another site that was given our address under its own name is not answered. */
const OWN_HOST = /^(?:localhost|127\.0\.0\.1)(?::\d+)?$/;

type Shown = Pick<Fleet, 'overview' | 'nodes' | 'calls' | 'front'>;

export function servePage(fleet: Shown, net: Net, port: number): Promise<Listening> {
  return net.serveHttp({ host: '127.0.0.1', port }, (req) => answer(fleet, req));
}

async function answer(fleet: Shown, req: HttpRequest): Promise<HttpReply> {
  if (req.method !== 'GET') return { status: 405, body: 'this page only shows\n' };
  if (!OWN_HOST.test(req.headers.host ?? '')) return { status: 403, body: 'ask for localhost\n' };
  const [, first = '', , page = ''] = req.path.split('/');
  if (first === '') return { status: 200, headers: HTML_HEADERS, body: HTML };
  if (first === 'fleet.json') {
    const calls = { total: fleet.calls.total, byKind: Object.fromEntries(fleet.calls.byKind) };
    const body = JSON.stringify({ ...fleet.overview(), calls, each: fleet.nodes() });
    return { status: 200, headers: { 'content-type': 'application/json' }, body };
  }
  if (first === 'nodes' && OF_NODE.includes(page)) return fleet.front.handleAdmin(req);
  return { status: 404, body: `there is ${req.path} not\n` };
}

const HTML = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>actorlet fleet</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
<style>
body { font: 14px system-ui, sans-serif; margin: 1rem; color: #1f2933; background: #fff }
h1 { font-size: 1.1rem } h2 { font-size: 1rem; margin: 1rem 0 .3rem }
#grid { display: grid; grid-template-columns: repeat(auto-fill, 14px); gap: 2px }
#grid button { width: 14px; height: 14px; border: 0; padding: 0; cursor: pointer }
.ready { background: #2f855a } .notReady { background: #c53030 } .off { background: #a0aec0 } .failed { background: #702459 }
#facts { display: flex; flex-wrap: wrap; gap: 2rem } td, th { text-align: left; padding-right: 1rem }
pre { max-height: 60vh; overflow: auto; background: #f4f6f8; padding: .5rem } #lost { color: #c53030 }
</style></head><body>
<h1>actorlet fleet <span id="sum"></span> <span id="lost" role="status"></span></h1>
<div id="grid" aria-label="nodes"></div>
<div id="facts"><div><h2>Pods</h2><table id="pods"></table></div>
<div><h2>API calls a second: <span id="rate">-</span></h2><table id="calls"></table></div>
<div><h2>Slowest to Ready</h2><table id="slow"></table></div></div>
<div id="node" hidden><h2 id="name"></h2><p id="links"></p><pre id="text"></pre></div>
<script>
const at = (id) => document.getElementById(id);
const rows = (id, list) => at(id).replaceChildren(...list.map((cells) => {
  const tr = document.createElement('tr');
  for (const cell of cells) tr.insertCell().textContent = cell;
  return tr;
}));
const show = async (name, page) => {
  at('node').hidden = false;
  at('name').textContent = name;
  at('links').replaceChildren(...Object.entries({ tree: 'statez?text', why: 'why?pod=node', pods: 'pods', recorder: 'recorder' }).map(([text, path]) => {
    const b = document.createElement('button');
    b.textContent = text;
    b.onclick = () => show(name, path);
    return b;
  }));
  const answer = await fetch('nodes/' + encodeURIComponent(name) + '/' + page);
  const text = await answer.text();
  try { at('text').textContent = JSON.stringify(JSON.parse(text), null, 1); } catch { at('text').textContent = text; }
};
// Nodes that started together renew their leases together, every 10 s.
const RATE_MS = 12000;
const seen = [];
const look = async () => {
  try {
    const f = await (await fetch('fleet.json')).json();
    const grid = at('grid');
    f.each.forEach((n, i) => {
      let b = grid.children[i];
      if (!b) { b = grid.appendChild(document.createElement('button')); b.onclick = () => show(b.dataset.name, 'statez?text'); }
      b.dataset.name = n.name;
      b.className = n.state;
      b.title = n.name + ' (' + n.group + '): ' + n.state + ', ' + n.pods + ' pods';
    });
    at('sum').textContent = f.nodes.ready + ' of ' + f.nodes.total + ' nodes Ready, ' + f.pods.ready + ' of ' + f.pods.total + ' pods Ready';
    rows('pods', Object.entries(f.pods.byPhase));
    const now = { ms: performance.now(), total: f.calls.total };
    seen.push(now);
    while (now.ms - seen[0].ms > RATE_MS) seen.shift();
    if (seen.length > 1) at('rate').textContent = ((now.total - seen[0].total) / (now.ms - seen[0].ms) * 1000).toFixed(1);
    rows('calls', Object.entries(f.calls.byKind).sort((a, b) => b[1] - a[1]).slice(0, 12));
    const slow = [...f.each].sort((a, b) => (b.readyAfterMs ?? 1e15) - (a.readyAfterMs ?? 1e15)).slice(0, 10);
    rows('slow', slow.map((n) => [n.name, n.readyAfterMs === null ? 'not yet' : (n.readyAfterMs / 1000).toFixed(1) + ' s']));
    at('lost').textContent = '';
  } catch { at('lost').textContent = 'the fleet does not answer'; }
  setTimeout(look, 2000);
};
look();
</script></body></html>
`;
