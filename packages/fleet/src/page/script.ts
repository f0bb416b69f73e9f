/**
 * What the overview page does. All nodes are drawn on one canvas: thousands of elements would take longer than a frame.
 * Names come from pods' authors and fleet files: they are only ever set as text.
 */
export const SCRIPT = `
  const at = (id) => document.getElementById(id);
  const make = (tag, o = {}, ...children) => { const e = Object.assign(document.createElement(tag), o); e.append(...children); return e; };
  const table = (id, list) => at(id).replaceChildren(...list.map((cells) => make('tr', {}, ...cells.map((c) => make('td', {}, c)))));
  const seconds = (ms) => (ms / 1000).toFixed(1) + ' s';
  const STATES = { r: ['ready', 'Ready'], n: ['notReady', 'not Ready'], f: ['failed', 'failed'], o: ['off', 'off'] };
  const EVERY_MS = 2000;
  // Nodes that started together renew their leases together, every 10 s.
  const RATE_MS = 12000;
  const report = at('report') && JSON.parse(at('report').textContent);
  const filters = { text: '', group: '', zone: '', version: '', label: '', states: new Set() };
  let facts = [], last = null, revision = -1, shown = [], chosen = -1, cell = 16, columns = 1, isDrawing = false;
  const zoneOf = (f) => f.labels['topology.kubernetes.io/zone'] ?? '';

  function fits(f, i) {
    const { text, group, zone, version, label, states } = filters;
    if (states.size > 0 && !states.has(last.columns.states[i])) return false;
    if (group !== '' && f.group !== group || version !== '' && f.version !== version || zone !== '' && zoneOf(f) !== zone) return false;
    if (label !== '') { const [key, value] = label.split('='); if (!Object.hasOwn(f.labels, key) || value !== undefined && f.labels[key] !== value) return false; }
    return text === '' || f.name.includes(text);
  }
  function choose() {
    if (last === null) return;
    shown = [];
    facts.forEach((f, i) => { if (fits(f, i)) shown.push(i); });
    at('shown').textContent = shown.length === facts.length ? '' : shown.length + ' of ' + facts.length + ' nodes are shown';
    draw();
  }
  function draw() {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => { isDrawing = false; paint(); });
  }
  function paint() {
    const beganMs = performance.now(), grid = at('grid'), wide = grid.clientWidth, scale = devicePixelRatio;
    cell = shown.length > 2000 ? 10 : 16;
    columns = Math.max(1, Math.floor(wide / cell));
    const high = Math.max(cell, Math.ceil(shown.length / columns) * cell);
    if (grid.width !== Math.round(wide * scale) || grid.height !== Math.round(high * scale)) {
      grid.width = Math.round(wide * scale); grid.height = Math.round(high * scale); grid.style.height = high + 'px';
    }
    const style = getComputedStyle(document.documentElement), c = grid.getContext('2d');
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, wide, high);
    for (const letter of Object.keys(STATES)) {
      c.fillStyle = style.getPropertyValue('--' + STATES[letter][0]);
      c.beginPath();
      shown.forEach((i, k) => { if (last.columns.states[i] === letter) c.rect((k % columns) * cell, Math.floor(k / columns) * cell, cell - 2, cell - 2); });
      c.fill();
    }
    const k = shown.indexOf(chosen);
    if (k >= 0) { c.strokeStyle = style.getPropertyValue('--chosen'); c.lineWidth = 2; c.strokeRect((k % columns) * cell, Math.floor(k / columns) * cell, cell - 2, cell - 2); }
    grid.setAttribute('aria-label', at('sum').textContent + '. Arrows walk through the nodes, Enter opens one.');
    grid.dataset.drawMs = (performance.now() - beganMs).toFixed(2);
  }
  function under(e) {
    const box = at('grid').getBoundingClientRect(), x = Math.floor((e.clientX - box.left) / cell), y = Math.floor((e.clientY - box.top) / cell);
    return x < columns ? shown[y * columns + x] ?? -1 : -1;
  }
  const words = (i) => facts[i].name + ' (' + facts[i].group + '): ' + STATES[last.columns.states[i]][1] + ', ' + last.columns.pods[i] + ' pods';
  at('grid').onmousemove = (e) => { const i = under(e); at('grid').title = i < 0 ? '' : words(i); };
  at('grid').onclick = (e) => open(under(e));
  at('grid').onkeydown = (e) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
    if (by === undefined && e.key !== 'Enter') return;
    e.preventDefault();
    if (by !== undefined) { const k = Math.min(shown.length - 1, Math.max(0, shown.indexOf(chosen) + by)); chosen = shown[k] ?? -1; draw(); if (chosen >= 0) at('walk').textContent = words(chosen); }
    else if (chosen >= 0) open(chosen);
  };

  // A node's own address: #/nodes/NAME.
  function open(i) { if (i >= 0) location.hash = '#/nodes/' + encodeURIComponent(facts[i].name); }
  function opened() {
    const name = /^#\\/nodes\\/(.+)$/.exec(location.hash)?.[1];
    chosen = name === undefined ? -1 : facts.findIndex((f) => encodeURIComponent(f.name) === name);
    at('node').hidden = chosen < 0;
    draw();
    if (chosen < 0) return;
    const f = facts[chosen];
    at('name').textContent = f.name;
    at('about').textContent = [STATES[last.columns.states[chosen]][1], last.columns.pods[chosen] + ' pods', 'group ' + f.group, f.version, ...Object.entries(f.labels).map(([k, v]) => k + '=' + v)].filter((t) => t !== '').join(' · ');
    if (report !== null) return;
    at('links').replaceChildren(...Object.entries({ tree: 'statez?text', why: 'why?pod=node', pods: 'pods', recorder: 'recorder' }).map(([text, path]) => make('button', { textContent: text, onclick: () => show(f.name, path) })));
    show(f.name, 'statez?text');
  }
  async function show(name, path) {
    const text = await fetch('nodes/' + encodeURIComponent(name) + '/' + path).then((a) => a.text(), () => 'the fleet does not answer');
    if (facts[chosen]?.name !== name) return;
    try { const data = JSON.parse(text); at('text-of-node').textContent = data.lines?.join('\\n') ?? JSON.stringify(data, null, 1); } catch { at('text-of-node').textContent = text; }
  }
  addEventListener('hashchange', opened);
  addEventListener('resize', draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);

  function facets() {
    const of = (pick) => [...new Set(facts.map(pick))].filter((v) => v !== '').sort();
    for (const [id, values] of [['group', of((f) => f.group)], ['zone', of(zoneOf)], ['version', of((f) => f.version)]]) {
      at(id).replaceChildren(make('option', { value: '', textContent: 'every ' + id }), ...values.map((v) => make('option', { value: v, textContent: v })));
      at(id).hidden = values.length < 2;
      at(id).value = filters[id] = values.includes(filters[id]) ? filters[id] : '';
    }
    const labels = new Set(facts.flatMap((f) => Object.entries(f.labels).map(([k, v]) => k + '=' + v)));
    at('labels').replaceChildren(...[...labels].slice(0, 500).map((value) => make('option', { value })));
  }
  for (const id of ['text', 'group', 'zone', 'version', 'label']) at(id).oninput = () => { filters[id] = at(id).value.trim(); choose(); };
  const seen = [];
  function take(f) {
    if (f.facts !== undefined) { facts = f.facts; revision = f.revision; last = f; facets(); opened(); }
    last = f;
    at('sum').textContent = f.nodes.ready + ' of ' + f.nodes.total + ' nodes Ready, ' + f.pods.ready + ' of ' + f.pods.total + ' pods Ready';
    at('legend').replaceChildren(...Object.entries(STATES).map(([letter, [name, text]]) => {
      const count = f.columns.states.split(letter).length - 1;
      const b = make('button', { className: 'key', textContent: count + ' ' + text, onclick: () => { filters.states.delete(letter) || filters.states.add(letter); take(last); } });
      b.style.setProperty('--of', 'var(--' + name + ')');
      b.setAttribute('aria-pressed', String(filters.states.has(letter)));
      return b;
    }));
    table('pods', Object.entries(f.pods.byPhase));
    table('reasons', Object.entries(f.pods.byReason).sort((a, b) => b[1] - a[1]).slice(0, 12));
    at('waiting').hidden = Object.keys(f.pods.byReason).length === 0;
    table('calls', Object.entries(f.calls.byKind).sort((a, b) => b[1] - a[1]).slice(0, 12));
    const slow = facts.map((_, i) => i).sort((a, b) => (f.columns.readyAfterMs[b] ?? 1e15) - (f.columns.readyAfterMs[a] ?? 1e15)).slice(0, 10);
    table('slow', slow.map((i) => [make('a', { textContent: facts[i].name, href: '#/nodes/' + encodeURIComponent(facts[i].name) }), f.columns.readyAfterMs[i] === null ? 'not yet' : seconds(f.columns.readyAfterMs[i])]));
    if (report === null) {
      const now = { ms: performance.now(), total: f.calls.total };
      seen.push(now);
      while (now.ms - seen[0].ms > RATE_MS) seen.shift();
      at('rate').textContent = seen.length < 2 ? '' : ': ' + ((now.total - seen[0].total) / (now.ms - seen[0].ms) * 1000).toFixed(1) + ' a second';
    } else table('seconds', Object.entries(f.seconds).map(([of, p]) => [({ nodeReady: 'a daemon’s start to Ready', podReady: 'a pod’s creation to Ready', podStart: 'seen by its node to Ready' })[of], p.count + ' times', 'p50 ' + p.p50, 'p90 ' + p.p90, 'p99 ' + p.p99, 'max ' + p.max]));
    run(f.run);
    choose();
  }

  const svg = (tag, attributes, text = '') => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.textContent = text;
    return e;
  };
  const titled = (e, text) => { e.append(svg('title', {}, text)); return e; };
  function run(r) {
    at('run').hidden = r === null || r.samples.length < 2;
    if (at('run').hidden) return;
    const wide = 1000, high = 90, row = 18, x = (ms) => Math.min(wide, ms / Math.max(1, r.atMs) * wide);
    const line = (value, of, colour) => svg('polyline', { fill: 'none', stroke: 'var(--' + colour + ')', 'stroke-width': 2, points: r.samples.filter((s) => s[of] > 0).map((s) => x(s[0]).toFixed(1) + ',' + (high - 5 - s[value] / s[of] * (high - 15)).toFixed(1)).join(' ') });
    const drawn = [titled(line(2, 1, 'ready'), 'share of nodes that are Ready'), titled(line(4, 3, 'pods'), 'share of pods that are Ready')];
    for (const s of r.steps) drawn.push(titled(svg('rect', { x: x(s.atMs), y: 0, width: Math.max(3, x(s.doneMs) - x(s.atMs)), height: high, fill: 'var(--chosen)', opacity: .55 }), seconds(s.atMs) + ' ' + s.what));
    r.expect.forEach((e, k) => {
      const y = high + 4 + k * row;
      e.green.forEach(([fromMs, fits], i) => {
        const toMs = e.green[i + 1]?.[0] ?? (e.result === 'open' ? r.atMs : Math.max(e.metMs ?? fromMs, fromMs + r.atMs / 200));
        drawn.push(titled(svg('rect', { x: x(fromMs), y, width: Math.max(2, x(toMs) - x(fromMs)), height: row - 4, fill: 'var(--' + (fits === null ? 'off' : fits ? 'ready' : 'notReady') + ')' }), e.name + ': ' + (fits === null ? 'not seen' : fits ? 'green' : 'red') + ' from ' + seconds(fromMs)));
      });
      drawn.push(svg('text', { x: 4, y: y + 11 }, e.name));
    });
    const picture = at('timeline');
    picture.setAttribute('viewBox', '0 0 ' + wide + ' ' + (high + 6 + r.expect.length * row));
    picture.replaceChildren(...drawn);
    at('took').textContent = seconds(r.atMs);
    const RESULT = { met: ['met', 'good'], held: ['held', 'good'], unmet: ['NOT MET', 'bad'], open: ['not decided', 'quiet'] };
    at('expect').replaceChildren(...r.expect.map((e) => make('li', {}, e.name + ': ', make('strong', { className: RESULT[e.result][1], textContent: RESULT[e.result][0] + (e.result === 'met' ? ' after ' + seconds(e.metMs) : '') }), e.is === null ? '' : ' (' + e.is + ')')));
    at('steps').replaceChildren(...r.steps.map((s) => make('li', {}, seconds(s.atMs) + ' ' + s.what, ...s.failed.map((why) => make('div', { className: 'bad', textContent: why })))));
    at('expectTitle').hidden = r.expect.length === 0;
    at('stepsTitle').hidden = r.steps.length === 0;
  }

  async function look() {
    try { take(await (await fetch('fleet.json?revision=' + revision)).json()); at('lost').textContent = ''; } catch { at('lost').textContent = 'the fleet does not answer'; }
    setTimeout(look, EVERY_MS);
  }
  if (report === null) look(); else take(report);
`;
