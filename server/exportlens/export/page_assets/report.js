"use strict";
// The report page. Its data stands in the script element #data; the page works from a file and in a webview.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { report, graph, sources } = data;
  const editor = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi() : null;
  const byId = (id) => document.getElementById(id);

  /** An element with text and children; text is never parsed as HTML. */
  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "onclick") node.addEventListener("click", value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined).map((c) => (c instanceof Node ? c : String(c))));
    return node;
  }
  /** Errors in scientific notation; plain quantities (seconds, milliseconds) with as many digits as one reads. */
  const error = (value) => (value === null || value === undefined ? "–" : value === 0 ? "0" : Number(value).toExponential(1));
  const number = (value) => (value === null || value === undefined ? "–" : value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value === 0 ? "0" : Number(value).toPrecision(2));
  const seconds = (value) => (value === null || value === undefined ? "–" : value >= 1 ? `${number(value)} s` : `${Math.round(value * 1000)} ms`);
  const milliseconds = (value) => (value === null || value === undefined ? "–" : `${number(value)} ms`);
  const bytes = (n) => (n ? (n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : `${(n / 1024).toFixed(1)} KiB`) : "–");
  const short = (file) => file.split(/[\\/]/).slice(-2).join("/");
  const table = (heads, rows) => make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", {}, h)))), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { class: "number" }, cell)))))));

  function place(file, line) {
    return make("a", { onclick: () => showLine(file, line, true) }, `${short(file)}:${line}`);
  }

  // ---------------------------------------------------------------- head, ladder, findings, tables
  function head() {
    const verdict = report.ok ? "Confirmed: exports and equals eager" : report.failure || report.targets.some((t) => t.status === "failed") ? "Not confirmed" : "Exports, but not every target could be tried";
    byId("head").append(
      make("h1", {}, report.model),
      make("div", {}, make("b", { class: report.ok ? "ok" : "bad" }, verdict), make("span", { class: "dim" }, `  ·  torch ${report.torch ?? "?"}  ·  Python ${report.python ?? "?"}  ·  ${report.mode ?? "?"}  ·  ${seconds(report.seconds)}`)),
    );
    const words = report.chosen ?? {};
    const lines = [["constructor", words.init], ["inputs", words.inputs], ["keywords", words.kwargs], ["dynamic shapes", words.dynamic_shapes]].filter(([, text]) => text);
    for (const [name, text] of lines) byId("head").append(make("div", { class: "dim mono" }, `${name}: ${text}`));
    if (words.source) byId("head").append(make("div", { class: "dim" }, `from ${words.source}`));
    if (report.failure) byId("head").append(make("div", { class: "finding" }, `Failed at ${report.failure.stage} (${report.failure.kind}): ${report.failure.message}`));
  }

  function ladder() {
    const rows = [...report.modes.map((m) => [m.mode, m]), ...report.targets.map((t) => [t.name, t])];
    for (const [name, part] of rows) {
      const failed = part.failure ? part.failure.stage : null;
      const rungs = Object.entries(part.stages).map(([stage, spent]) => make("span", { class: `rung${stage === failed ? " failed" : ""}` }, `${stage} ${seconds(spent)}`));
      const verdict = part.failure ? make("span", { class: "bad" }, part.failure.kind) : part.status === "skipped" ? make("span", { class: "dim" }, "not tried: there is no program to lower") : make("span", { class: "ok" }, "ok");
      byId("ladder").append(make("div", { class: "ladder" }, make("span", { class: "name" }, name), make("div", { class: "rungs" }, ...rungs, verdict)));
    }
    if (!rows.length) byId("ladder").append(make("p", { class: "dim" }, "Nothing was run."));
  }

  function findings() {
    const failures = report.findings.filter((f) => f.severity !== "information");
    const hints = report.findings.length - failures.length;
    if (!failures.length) byId("findings").append(make("p", { class: "dim" }, hints ? "No failures. Lines that a target leaves to the CPU stand with the target." : "None."));
    for (const f of failures) {
      const torch = f.data.torch ? make("details", {}, make("summary", { class: "dim" }, "torch's own words"), make("pre", {}, f.data.torch)) : null;
      byId("findings").append(make("div", { class: `finding ${f.severity}` }, place(f.filename, f.location.row), make("b", {}, ` ${f.code} `), f.message, f.url ? make("a", { href: f.url }, `  ${f.data.gb ?? "torch's page"}`) : null, ...f.notes.map((note) => make("div", { class: "dim" }, note)), torch));
    }
  }

  function programs() {
    const shown = report.modes.filter((m) => m.comparison);
    if (!shown.length) return;
    byId("targets").append(
      table(
        ["program", "status", "max abs error", "max rel error", "eager", "exported", "peak memory", "dynamic dims"],
        shown.map((m) => [make("b", {}, m.mode), make("span", { class: m.ok ? "ok" : "bad" }, m.failure ? m.failure.kind : m.comparison.same_as ? `ok, the same program as ${m.comparison.same_as}` : "ok"), error(m.comparison.max_abs_error), error(m.comparison.max_rel_error), milliseconds(m.comparison.latency.eager_ms), milliseconds(m.comparison.latency.exported_ms), bytes(m.peak_memory), m.dynamic_dims.map((d) => `${d.places.join(" = ")}: ${d.low} to ${d.high ?? "∞"}`).join(", ") || "none"]),
      ),
    );
  }

  function targets() {
    programs();
    if (!report.targets.length) return byId("targets").append(make("p", { class: "dim" }, "No target was asked for."));
    byId("targets").append(
      table(
        ["target", "status", "time", "max abs error", "max rel error", "eager", "here", "size", "peak memory", "taken", "left", "artifact"],
        report.targets.map((t) => [make("b", {}, t.name), make("span", { class: t.status === "ok" ? "ok" : t.status === "skipped" ? "dim" : "bad" }, t.failure ? `${t.status} at ${t.failure.stage}` : t.status), seconds(t.seconds), error(t.max_abs_error), error(t.max_rel_error), milliseconds(t.latency?.eager_ms), milliseconds(t.latency?.artifact_ms), bytes(t.bytes), bytes(t.peak_memory), t.delegated ?? "–", t.delegated === null ? "–" : t.left.length, t.artifact ? make("span", { class: "mono", title: t.artifact }, short(t.artifact)) : "–"]),
      ),
    );
    for (const t of report.targets) {
      for (const note of t.notes) byId("targets").append(make("div", { class: "dim" }, `${t.name}: ${note}`));
      if (t.failure) byId("targets").append(make("div", { class: `finding${t.status === "unavailable" ? " information" : ""}` }, `${t.name}: ${t.failure.message}`));
      if (t.left.length) byId("targets").append(leftOver(t));
    }
  }

  /** What a target leaves to the CPU, by source line: a line, then its operators with how often each occurs. */
  function leftOver(target) {
    const lines = new Map();
    for (const node of target.left) {
      const key = node.frame ? `${node.frame.file}:${node.frame.line}` : "";
      const known = lines.get(key) ?? { frame: node.frame, counts: new Map() };
      known.counts.set(node.op, (known.counts.get(node.op) ?? 0) + 1);
      lines.set(key, known);
    }
    const rows = [...lines.values()].map(({ frame, counts }) =>
      make("div", {}, frame ? place(frame.file, frame.line) : make("span", { class: "dim" }, "of no line"), "  ", make("span", { class: "mono dim" }, [...counts].map(([op, n]) => (n > 1 ? `${op} ×${n}` : op)).join(", "))));
    return make("details", { open: rows.length <= 6 }, make("summary", {}, `${target.name} leaves ${target.left.length} operators to the CPU`), ...rows);
  }

  function comparison() {
    const parts = [...report.modes, ...report.targets].filter((part) => part.comparison);
    if (!parts.length) return byId("comparison").append(make("p", { class: "dim" }, "Nothing was compared."));
    const names = [...new Set(parts.flatMap((part) => part.comparison.cases.map((c) => c.case)))];
    const worst = (c) => c.outputs.reduce((most, o) => (o.max_abs_error === null ? most : Math.max(most ?? 0, o.max_abs_error)), null);
    const cell = (c) => make("span", { class: c.status === "equal" ? "ok" : c.status === "skipped" ? "dim" : "bad", title: c.message || c.note }, c.status === "equal" ? error(worst(c)) : c.status);
    byId("comparison").append(
      table(
        ["case", ...parts.map((part) => part.mode ?? part.name)],
        names.map((name) => [name, ...parts.map((part) => { const c = part.comparison.cases.find((x) => x.case === name); return c ? cell(c) : "–"; })]),
      ),
    );
    const said = new Set();
    for (const part of parts) {
      for (const c of part.comparison.cases) if (c.status !== "equal" || c.note) said.add(`${c.case}: ${[c.message, c.note].filter(Boolean).join("; ")}`);
      for (const note of [...(part.comparison.warnings ?? []), ...(part.comparison.notes ?? [])]) said.add(note);
    }
    for (const note of said) byId("comparison").append(make("div", { class: "dim" }, note));
  }

  function operators() {
    const counts = report.modes.map((m) => m.histogram).find((h) => Object.keys(h).length) ?? {};
    const rows = Object.entries(counts);
    if (!rows.length) return byId("operators").append(make("p", { class: "dim" }, "No program."));
    const most = Math.max(...rows.map(([, count]) => count));
    byId("operators").append(make("div", { class: "histogram" }, ...rows.map(([name, count]) => make("div", { class: "bin", title: name }, make("span", { class: "fill", style: `width: ${(100 * count) / most}%` }), make("span", { class: "mono name" }, name.replace(/\.default$/, "")), make("span", { class: "count" }, count)))));
  }

  // ---------------------------------------------------------------- source, linked to the graph both ways
  const nodesAt = new Map(); // "file:line" -> node ids
  for (const node of graph ? graph.nodes : []) {
    if (!node.file) continue;
    const key = `${node.file}:${node.line}`;
    nodesAt.set(key, [...(nodesAt.get(key) ?? []), node.id]);
  }
  const lineOf = (f) => `${f.filename}:${f.location.row}`;
  const faults = new Set(report.findings.filter((f) => f.severity !== "information").map(lineOf));
  const hinted = new Set(report.findings.filter((f) => f.severity === "information").map(lineOf));
  let shownFile = null;

  function showFile(file) {
    shownFile = file;
    byId("file").value = file;
    const rows = (sources[file] ?? "").split("\n").map((text, index) => {
      const key = `${file}:${index + 1}`;
      const row = make("div", { class: `row${nodesAt.has(key) ? " linked" : ""}${faults.has(key) ? " at-fault" : hinted.has(key) ? " left-over" : ""}`, "data-line": index + 1 }, make("span", { class: "number" }, index + 1), make("span", { class: "text" }, text || " "));
      row.addEventListener("click", () => { markLines([index + 1]); if (nodesAt.has(key)) selectNodes(nodesAt.get(key)); });
      row.addEventListener("dblclick", () => openInEditor(file, index + 1));
      return row;
    });
    byId("source").replaceChildren(...rows);
  }

  function markLines(lines) {
    for (const row of byId("source").children) row.classList.toggle("marked", lines.includes(Number(row.dataset.line)));
    bringIntoView(byId("source").querySelector(".marked"));
  }

  function bringIntoView(row) {
    if (!row) return;
    // What is in view stays where it is: the second click of a double click must meet the same row.
    const box = byId("source"), top = row.offsetTop - box.offsetTop;
    if (top < box.scrollTop || top + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - 160;
  }

  function openInEditor(file, line) {
    if (editor) editor.postMessage({ type: "open", file, line });
  }

  function showLine(file, line, select) {
    if (!(file in sources)) return openInEditor(file, line);
    if (file !== shownFile) showFile(file);
    markLines([line]);
    openInEditor(file, line);
    if (select) { const ids = nodesAt.get(`${file}:${line}`); if (ids) selectNodes(ids); }
    return undefined;
  }

  // ---------------------------------------------------------------- graph: submodules fold into one node each
  const MOST_OPENED = 40; // nodes whose submodules a search or a line opens at once
  const MOST_SHOWN = 8000; // what a canvas draws without a wait that one notices
  const MANY_EDGES = 600; // beyond, they are straight, and left out while the view moves
  const READABLE = 0.75; // the zoom below which labels are too small to read
  const open = new Set();
  const chains = new Map(); // node id -> its submodules, outermost first
  const sizes = new Map(); // submodule -> number of operators
  for (const node of graph ? graph.nodes : []) {
    const parts = node.module ? node.module.split(".") : [];
    const chain = parts.map((_, index) => parts.slice(0, index + 1).join("."));
    chains.set(node.id, chain);
    if (node.kind === "call_function") for (const path of chain) sizes.set(path, (sizes.get(path) ?? 0) + 1);
  }
  const packet = (op) => op.replace(/^aten[.:]+/, "").split(".")[0].replace(/^_+|_copy$/g, "");

  /** The nodes that a target leaves to the CPU: by name, else those of the same operator on its line, else the whole line
   * (lowering takes operators apart, and names them anew). */
  function leftNodes(target) {
    const found = new Set();
    const operators = new Map((graph ? graph.nodes : []).map((node) => [node.id, node]));
    for (const { node, op, frame } of target.left) {
      const same = operators.get(node);
      if (same && packet(same.op) === packet(op)) { found.add(node); continue; }
      const onLine = frame ? (nodesAt.get(`${frame.file}:${frame.line}`) ?? []).filter((id) => operators.get(id).kind === "call_function") : [];
      const alike = onLine.filter((id) => packet(operators.get(id).op) === packet(op));
      for (const id of alike.length ? alike : onLine) found.add(id);
    }
    return found;
  }
  const leavers = report.targets.filter((t) => t.left.length).map((t) => ({ name: t.name, nodes: leftNodes(t) }));
  let coloured = null; // the target whose remainder is coloured; null for all of them
  const left = () => new Set(leavers.filter((each) => coloured === null || each.name === coloured).flatMap((each) => [...each.nodes]));
  const hidden = (node) => node.kind === "placeholder" && /^(p|b|c)_/.test(node.id);
  const representative = (id) => chains.get(id).find((path) => !open.has(path) && (sizes.get(path) ?? 0) > 1) ?? null;
  const within = (id, folded) => { const chain = chains.get(id).filter((path) => (sizes.get(path) ?? 0) > 1); return folded ? chain.slice(0, chain.indexOf(folded)) : chain; };
  const countable = (graph ? graph.nodes : []).filter((node) => !hidden(node)).length; // parameters are not drawn
  let view = null;
  let drawing = 0; // which drawing is the newest: an older one gives up

  function visible() {
    const nodes = new Map();
    const stands = new Map();
    const leftOnes = left();
    for (const node of graph.nodes) {
      if (hidden(node)) continue;
      const folded = representative(node.id);
      const id = folded ? `module:${folded}` : node.id;
      stands.set(node.id, id);
      if (!nodes.has(id)) nodes.set(id, folded ? { id, folded, label: `${folded}\n${sizes.get(folded)} ops`, kind: "module" } : { id, label: node.op.replace(/^aten\./, "").replace(/\.default$/, "") === "placeholder" ? node.id : node.op.replace(/^aten\./, "").replace(/\.default$/, ""), kind: node.kind });
      nodes.get(id).within ??= within(node.id, folded);
      if (leftOnes.has(node.id)) nodes.get(id).left = true;
      if (node.file && faults.has(`${node.file}:${node.line}`)) nodes.get(id).fault = true;
    }
    const edges = new Map();
    for (const [from, to] of graph.edges) {
      const a = stands.get(from), b = stands.get(to);
      if (a && b && a !== b) edges.set(`${a} ${b}`, [a, b]);
    }
    return { nodes: [...nodes.values()], edges: [...edges.values()] };
  }

  async function draw(keep) {
    const shown = visible();
    const cut = shown.nodes.length > MOST_SHOWN;
    byId("count").textContent = `${shown.nodes.length} of ${countable} nodes${cut ? `: more than can be laid out, the first ${MOST_SHOWN} are shown; fold submodules` : ""}`;
    const nodes = shown.nodes.slice(0, MOST_SHOWN);
    const height = (n) => (n.kind === "module" ? 42 : 28);
    const names = new Set(nodes.map((n) => n.id));
    const edges = shown.edges.filter(([a, b]) => names.has(a) && names.has(b));
    const width = (n) => Math.min(260, Math.max(64, 14 + 7.2 * Math.max(...n.label.split("\n").map((l) => l.length))));
    byId("count").textContent += ", laying out …"; // until the layout is there
    const turn = (drawing += 1);
    await new Promise((painted) => setTimeout(painted));
    const { at, boxes } = await graphLayout(nodes.map((n) => ({ id: n.id, width: width(n), height: height(n), within: n.within })), edges);
    if (turn !== drawing) return;
    const many = edges.length > MANY_EDGES;
    const style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name).trim();
    if (view) view.destroy();
    view = cytoscape({
      container: byId("graph"),
      elements: [
        ...boxes.map((box) => ({ data: { id: `box:${box.path}`, box: box.path, label: box.path, width: box.width, height: box.height }, position: { x: box.x, y: box.y }, classes: "box", selectable: false })),
        ...nodes.map((n) => ({ data: { ...n, width: width(n) }, position: at.get(n.id), classes: [n.kind, n.left ? "left" : "", n.fault ? "fault" : ""].join(" ") })),
        ...edges.map(([source, target], i) => ({ data: { id: `edge${i}`, source, target } })),
      ],
      layout: { name: "preset" },
      minZoom: 0.05,
      maxZoom: 2.5,
      autoungrabify: true,
      hideEdgesOnViewport: many,
      style: [
        { selector: "node", style: { label: "data(label)", width: "data(width)", height: 26, shape: "round-rectangle", "text-valign": "center", "text-wrap": "wrap", "font-size": 11, "min-zoomed-font-size": 5, color: colour("--text"), "background-color": colour("--soft"), "border-width": 1, "border-color": colour("--line") } },
        { selector: "node.module", style: { height: 40, "border-width": 2, "border-color": colour("--accent") } },
        { selector: "node.placeholder, node.output", style: { "background-color": colour("--back"), "border-style": "dashed" } },
        { selector: "node.box", style: { height: "data(height)", "z-index": 0, "background-color": colour("--accent"), "background-opacity": 0.05, "border-color": colour("--line"), color: colour("--dim"), "text-valign": "top", "text-halign": "center", "text-margin-y": 18 } },
        { selector: "node.left", style: { "border-color": colour("--left"), "background-color": colour("--left-soft"), "border-width": 2 } },
        { selector: "node.fault", style: { "border-color": colour("--bad"), "border-width": 3 } },
        { selector: "node:selected", style: { "background-color": colour("--mark"), "border-color": colour("--accent"), "border-width": 3 } },
        { selector: "edge", style: { width: 1.2, "line-color": colour("--line"), "target-arrow-color": colour("--dim"), "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": many ? "straight" : "bezier", "z-index": 1 } },
      ],
    });
    view.on("tap", "node", (event) => tapped(event.target.data()));
    if (keep && view.$id(keep).length) { view.zoom(0.9); view.center(view.$id(keep)); }
    else firstLook();
    byId("count").textContent = byId("count").textContent.replace(/, laying out …$/, "");
    byId("graph").dataset.drawn = String(nodes.length);
  }

  /** All of the graph where its labels can then be read; else its beginning, at a size at which they can. */
  function firstLook() {
    view.fit(undefined, 24);
    if (view.zoom() > 1.2) { view.zoom(1.2); view.center(); }
    if (view.zoom() >= READABLE) return;
    view.zoom(READABLE);
    const top = view.nodes().not(".box").toArray().reduce((first, node) => (node.position().y < first.position().y ? node : first));
    view.center(top);
    view.panBy({ x: 0, y: 24 - top.renderedBoundingBox().y1 });
  }

  function tapped(node) {
    if (node.box) return foldUp(node.box);
    if (node.folded) {
      open.add(node.folded);
      const inside = graph.nodes.find((n) => chains.get(n.id).includes(node.folded) && n.kind === "call_function");
      draw(inside ? representative(inside.id) ? `module:${representative(inside.id)}` : inside.id : null);
      return;
    }
    const found = graph.nodes.find((n) => n.id === node.id);
    describe(found);
    if (found.file) showLine(found.file, found.line, false);
    return undefined;
  }

  /** Folds a submodule with all that is open in it, and keeps it in view. */
  function foldUp(path) {
    for (const each of [...open]) if (each === path || each.startsWith(`${path}.`)) open.delete(each);
    draw(`module:${path}`);
  }

  /** What the colours mean; of several targets, one can be chosen. */
  function legend() {
    const swatch = (kind, text) => make("span", { class: `swatch ${kind}` }, text);
    const parts = [swatch("module", "submodule: click to open"), swatch("box", "open submodule: click to fold")];
    if (faults.size) parts.push(swatch("fault", "a finding's line"));
    if (leavers.length) {
      const choice = make("select", { id: "leaver", "aria-label": "Target" }, ...(leavers.length > 1 ? [make("option", { value: "" }, "a target")] : []), ...leavers.map((each) => make("option", { value: each.name }, each.name)));
      choice.addEventListener("change", () => { coloured = choice.value || null; recolour(); });
      const left = swatch("left", "left to the CPU by ");
      left.append(choice);
      parts.push(left);
    }
    byId("legend").replaceChildren(...parts);
  }

  function recolour() {
    const shown = new Map(visible().nodes.map((node) => [node.id, node]));
    view.batch(() => view.nodes().forEach((node) => { node.toggleClass("left", Boolean(shown.get(node.id())?.left)); }));
  }

  function describe(node) {
    byId("detail").replaceChildren(make("span", { class: "mono" }, `${node.id} = ${node.op}  ${node.value}`), node.module ? make("span", { class: "dim" }, `  in ${node.module} `) : "", node.module ? make("a", { onclick: () => foldUp(node.module) }, "fold") : "");
  }

  /** Selects nodes, and opens the submodules around them where they are few; `total` were found, where these are the first. */
  async function selectNodes(ids, total = ids.length) {
    let redraw = false;
    for (const id of ids) for (const path of chains.get(id)) if (!open.has(path) && ids.length <= MOST_OPENED) { open.add(path); redraw = true; }
    if (redraw) await draw(ids[0]);
    if (!view) return;
    view.$(":selected").unselect();
    // What stays folded (too many nodes to open) is shown by the submodule that it is in.
    const shown = [...new Set(ids.map((id) => (representative(id) ? `module:${representative(id)}` : id)))];
    const found = view.collection(shown.map((id) => view.$id(id)).filter((n) => n.length).map((n) => n[0]));
    found.select();
    const all = found.boundingBox(), fits = Math.max(all.w * view.zoom() / view.width(), all.h * view.zoom() / view.height()) < 1;
    if (found.length) view.center(fits ? found : found[0]);
    const first = graph.nodes.find((n) => n.id === ids[0]);
    if (first) describe(first);
    if (ids.length > 1) byId("detail").append(make("span", { class: "dim" }, `  and ${total - 1} more${total > ids.length ? `, of which ${ids.length - 1} are marked` : ""}${shown.length < ids.length ? ", folded in submodules" : ""}`));
    if (first && first.file in sources) {
      if (first.file !== shownFile) showFile(first.file);
      markLines([first.line]);
    }
  }

  function start() {
    head(); ladder(); findings(); targets(); comparison(); operators();
    const files = Object.keys(sources);
    for (const file of files) byId("file").append(make("option", { value: file }, short(file)));
    byId("file").addEventListener("change", (event) => showFile(event.target.value));
    const wanted = [...report.findings].sort((a, b) => (a.severity === "information") - (b.severity === "information")).find((f) => f.filename in sources);
    const traced = graph && graph.nodes.find((n) => n.file in sources);
    if (wanted) { showFile(wanted.filename); markLines([wanted.location.row]); }
    else if (traced) { showFile(traced.file); bringIntoView(byId("source").children[traced.line - 1]); }
    else if (files.length) showFile(files[0]);
    if (!graph) {
      const panel = byId("graph").closest(".panel");
      panel.parentElement.classList.add("single");
      byId("legend").remove();
      panel.replaceWith(make("div", { class: "dim" }, "No program was exported, so there is no graph."));
      return;
    }
    legend();
    byId("unfold").addEventListener("click", () => { for (const path of sizes.keys()) open.add(path); draw(); });
    byId("fold").addEventListener("click", () => { open.clear(); draw(); });
    byId("search").addEventListener("change", (event) => {
      const word = event.target.value.trim();
      const found = word ? graph.nodes.filter((n) => n.kind === "call_function" && (n.op.includes(word) || n.id.includes(word) || n.module.includes(word))) : [];
      if (found.length) selectNodes(found.slice(0, MOST_OPENED).map((n) => n.id), found.length);
      else if (word) byId("detail").textContent = `No operator or module has "${word}" in its name.`;
    });
    if (countable <= 80) for (const path of sizes.keys()) open.add(path);
    // a first view with something to see: the outermost submodules are opened while the graph has only a few nodes
    for (let folded = visible().nodes.filter((n) => n.folded); folded.length && visible().nodes.length < 12; folded = visible().nodes.filter((n) => n.folded)) for (const n of folded) open.add(n.folded);
    draw();
  }
  start();
})();
