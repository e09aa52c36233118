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
  const number = (value) => (value === null || value === undefined ? "–" : Number(value).toPrecision(2).replace(/\.0$/, ""));
  const bytes = (n) => (n ? (n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : `${(n / 1024).toFixed(1)} KiB`) : "–");
  const short = (file) => file.split(/[\\/]/).slice(-2).join("/");
  const table = (heads, rows) => make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", {}, h)))), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { class: "number" }, cell)))))));

  function place(file, line) {
    return make("a", { onclick: () => showLine(file, line, true) }, `${short(file)}:${line}`);
  }

  // ---------------------------------------------------------------- head, ladder, findings, tables
  function head() {
    byId("head").append(
      make("h1", {}, report.model),
      make("div", {}, make("b", { class: report.ok ? "ok" : "bad" }, report.ok ? "Confirmed: exports and equals eager" : "Not confirmed"), make("span", { class: "dim" }, `  ·  torch ${report.torch ?? "?"}  ·  Python ${report.python ?? "?"}  ·  ${report.mode ?? "?"}  ·  ${report.seconds ?? "?"} s`)),
    );
    if (report.chosen && report.chosen.inputs) byId("head").append(make("div", { class: "dim mono" }, `inputs: ${report.chosen.inputs}${report.chosen.source ? `  (${report.chosen.source})` : ""}`));
    if (report.failure) byId("head").append(make("div", { class: "finding" }, `Failed at ${report.failure.stage} (${report.failure.kind}): ${report.failure.message}`));
  }

  function ladder() {
    const rows = [...report.modes.map((m) => [m.mode, m]), ...report.targets.map((t) => [t.name, t])];
    for (const [name, part] of rows) {
      const failed = part.failure ? part.failure.stage : null;
      const rungs = Object.entries(part.stages).map(([stage, seconds]) => make("span", { class: `rung${stage === failed ? " failed" : ""}` }, `${stage} ${seconds >= 1 ? seconds.toFixed(1) + " s" : Math.round(seconds * 1000) + " ms"}`));
      const verdict = part.failure ? make("span", { class: "bad" }, part.failure.kind) : make("span", { class: "ok" }, part.status === "skipped" ? "not tried" : "ok");
      byId("ladder").append(make("div", { class: "ladder" }, make("span", { class: "name" }, name), ...rungs, verdict));
    }
  }

  function findings() {
    if (!report.findings.length) byId("findings").append(make("p", { class: "dim" }, "None."));
    for (const f of report.findings) {
      byId("findings").append(make("div", { class: `finding ${f.severity}` }, place(f.filename, f.location.row), ` ${f.code} ${f.message} `, f.url ? make("a", { href: f.url }, "torch's page") : null, ...f.notes.map((note) => make("div", { class: "dim" }, note))));
    }
  }

  function targets() {
    if (!report.targets.length) return byId("targets").append(make("p", { class: "dim" }, "None asked."));
    byId("targets").append(
      table(
        ["target", "status", "seconds", "max abs error", "eager → here (ms)", "size", "peak memory", "taken", "left", "artifact"],
        report.targets.map((t) => [make("b", {}, t.name), make("span", { class: t.status === "ok" ? "ok" : "bad" }, t.failure ? `${t.status} at ${t.failure.stage}` : t.status), number(t.seconds), number(t.max_abs_error), t.latency ? `${number(t.latency.eager_ms)} → ${number(t.latency.artifact_ms)}` : "–", bytes(t.bytes), bytes(t.peak_memory), t.delegated ?? "–", t.left.length || "–", t.artifact ? make("span", { class: "mono" }, t.artifact) : "–"]),
      ),
    );
    for (const t of report.targets) {
      for (const note of t.notes) byId("targets").append(make("div", { class: "dim" }, `${t.name}: ${note}`));
      if (t.failure) byId("targets").append(make("div", { class: "finding" }, `${t.name}: ${t.failure.message}`));
      if (t.left.length) {
        const list = make("div", { class: "dim" }, `${t.name} leaves to the CPU: `);
        for (const node of t.left.slice(0, 60)) list.append(make("span", { class: "mono" }, node.op), " ", node.frame ? place(node.frame.file, node.frame.line) : "", "  ");
        byId("targets").append(list);
      }
    }
  }

  function comparison() {
    const parts = [...report.modes, ...report.targets].filter((part) => part.comparison);
    if (!parts.length) return byId("comparison").append(make("p", { class: "dim" }, "Nothing was compared."));
    const names = [...new Set(parts.flatMap((part) => part.comparison.cases.map((c) => c.case)))];
    const worst = (c) => c.outputs.reduce((most, o) => (o.max_abs_error === null ? most : Math.max(most ?? 0, o.max_abs_error)), null);
    byId("comparison").append(
      table(
        ["case", ...parts.map((part) => part.mode ?? part.name)],
        names.map((name) => [name, ...parts.map((part) => { const c = part.comparison.cases.find((x) => x.case === name); return c ? make("span", { class: c.status === "equal" ? "ok" : c.status === "skipped" ? "dim" : "bad", title: c.message || c.note }, c.status === "equal" ? number(worst(c)) : c.status) : "–"; })]),
      ),
    );
    for (const part of parts) for (const note of [...(part.comparison.warnings ?? []), ...(part.comparison.notes ?? [])]) byId("comparison").append(make("div", { class: "dim" }, note));
  }

  function operators() {
    const counts = report.modes.map((m) => m.histogram).find((h) => Object.keys(h).length) ?? {};
    const rows = Object.entries(counts).slice(0, 25);
    if (rows.length) byId("operators").append(table(["operator", "count"], rows.map(([name, count]) => [make("span", { class: "mono" }, name), count])));
    else byId("operators").append(make("p", { class: "dim" }, "No program."));
  }

  // ---------------------------------------------------------------- source, linked to the graph both ways
  const nodesAt = new Map(); // "file:line" -> node ids
  for (const node of graph ? graph.nodes : []) {
    if (!node.file) continue;
    const key = `${node.file}:${node.line}`;
    nodesAt.set(key, [...(nodesAt.get(key) ?? []), node.id]);
  }
  const faults = new Set(report.findings.map((f) => `${f.filename}:${f.location.row}`));
  let shownFile = null;

  function showFile(file) {
    shownFile = file;
    byId("file").value = file;
    const rows = (sources[file] ?? "").split("\n").map((text, index) => {
      const key = `${file}:${index + 1}`;
      const row = make("div", { class: `row${nodesAt.has(key) ? " linked" : ""}${faults.has(key) ? " at-fault" : ""}`, "data-line": index + 1 }, make("span", { class: "number" }, index + 1), make("span", { class: "text" }, text || " "));
      row.addEventListener("click", () => { markLines([index + 1]); if (nodesAt.has(key)) selectNodes(nodesAt.get(key)); });
      row.addEventListener("dblclick", () => openInEditor(file, index + 1));
      return row;
    });
    byId("source").replaceChildren(...rows);
  }

  function markLines(lines) {
    for (const row of byId("source").children) row.classList.toggle("marked", lines.includes(Number(row.dataset.line)));
    const first = byId("source").querySelector(".marked");
    if (first) byId("source").scrollTop = first.offsetTop - byId("source").offsetTop - 160;
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
  const MOST_SHOWN = 700;
  const open = new Set();
  const chains = new Map(); // node id -> its submodules, outermost first
  const sizes = new Map(); // submodule -> number of operators
  const left = new Set(report.targets.flatMap((t) => t.left.map((node) => node.node)));
  for (const node of graph ? graph.nodes : []) {
    const parts = node.module ? node.module.split(".") : [];
    const chain = parts.map((_, index) => parts.slice(0, index + 1).join("."));
    chains.set(node.id, chain);
    if (node.kind === "call_function") for (const path of chain) sizes.set(path, (sizes.get(path) ?? 0) + 1);
  }
  const hidden = (node) => node.kind === "placeholder" && /^(p|b|c)_/.test(node.id);
  const representative = (id) => chains.get(id).find((path) => !open.has(path) && (sizes.get(path) ?? 0) > 1) ?? null;
  let view = null;

  function visible() {
    const nodes = new Map();
    const stands = new Map();
    for (const node of graph.nodes) {
      if (hidden(node)) continue;
      const folded = representative(node.id);
      const id = folded ? `module:${folded}` : node.id;
      stands.set(node.id, id);
      if (!nodes.has(id)) nodes.set(id, folded ? { id, folded, label: `${folded}\n${sizes.get(folded)} ops`, kind: "module" } : { id, label: node.op.replace(/^aten\./, "").replace(/\.default$/, "") === "placeholder" ? node.id : node.op.replace(/^aten\./, "").replace(/\.default$/, ""), kind: node.kind });
      if (left.has(node.id)) nodes.get(id).left = true;
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
    byId("count").textContent = `${shown.nodes.length} of ${graph.nodes.length} nodes${cut ? `: too many to lay out, the first ${MOST_SHOWN} are shown; fold submodules` : ""}`;
    const nodes = shown.nodes.slice(0, MOST_SHOWN);
    const names = new Set(nodes.map((n) => n.id));
    const edges = shown.edges.filter(([a, b]) => names.has(a) && names.has(b));
    const width = (n) => Math.min(260, Math.max(64, 14 + 7.2 * Math.max(...n.label.split("\n").map((l) => l.length))));
    const layout = await new ELK().layout({
      id: "root",
      layoutOptions: { "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.spacing.nodeNode": "18", "elk.layered.spacing.nodeNodeBetweenLayers": "30" },
      children: nodes.map((n) => ({ id: n.id, width: width(n), height: n.kind === "module" ? 42 : 28 })),
      edges: edges.map(([a, b], i) => ({ id: `e${i}`, sources: [a], targets: [b] })),
    });
    const at = new Map(layout.children.map((child) => [child.id, child]));
    const style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name).trim();
    if (view) view.destroy();
    view = cytoscape({
      container: byId("graph"),
      elements: [
        ...nodes.map((n) => ({ data: { ...n, width: width(n) }, position: { x: at.get(n.id).x + width(n) / 2, y: at.get(n.id).y }, classes: [n.kind, n.left ? "left" : "", n.fault ? "fault" : ""].join(" ") })),
        ...edges.map(([source, target], i) => ({ data: { id: `edge${i}`, source, target } })),
      ],
      layout: { name: "preset" },
      wheelSensitivity: 0.3,
      minZoom: 0.05,
      maxZoom: 2.5,
      style: [
        { selector: "node", style: { label: "data(label)", width: "data(width)", height: 26, shape: "round-rectangle", "text-valign": "center", "text-wrap": "wrap", "font-size": 11, color: colour("--text"), "background-color": colour("--soft"), "border-width": 1, "border-color": colour("--line") } },
        { selector: "node.module", style: { height: 40, "border-width": 2, "border-color": colour("--accent") } },
        { selector: "node.placeholder, node.output", style: { "background-color": colour("--back"), "border-style": "dashed" } },
        { selector: "node.left", style: { "border-color": "#c77700", "border-width": 2 } },
        { selector: "node.fault", style: { "border-color": colour("--bad"), "border-width": 3 } },
        { selector: "node:selected", style: { "background-color": colour("--mark"), "border-color": colour("--accent"), "border-width": 3 } },
        { selector: "edge", style: { width: 1.2, "line-color": colour("--line"), "target-arrow-color": colour("--dim"), "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier" } },
      ],
    });
    view.on("tap", "node", (event) => tapped(event.target.data()));
    if (keep && view.$id(keep).length) { view.zoom(0.9); view.center(view.$id(keep)); }
    else if (nodes.length > 60) { view.zoom(0.7); view.center(view.nodes()[0]); view.panBy({ x: 0, y: -200 }); }
    else view.fit(undefined, 24);
    byId("graph").dataset.drawn = String(nodes.length);
  }

  function tapped(node) {
    if (node.folded) {
      open.add(node.folded);
      const inside = graph.nodes.find((n) => chains.get(n.id).includes(node.folded) && n.kind === "call_function");
      draw(inside ? representative(inside.id) ? `module:${representative(inside.id)}` : inside.id : null);
      return;
    }
    const found = graph.nodes.find((n) => n.id === node.id);
    describe(found);
    if (found.file) showLine(found.file, found.line, false);
  }

  function describe(node) {
    byId("detail").replaceChildren(make("span", { class: "mono" }, `${node.id} = ${node.op}  ${node.value}`), node.module ? make("span", { class: "dim" }, `  in ${node.module} `) : "", node.module ? make("a", { onclick: () => { for (const path of [...open]) if (path === node.module || path.startsWith(`${node.module}.`)) open.delete(path); draw(); } }, "fold") : "");
  }

  async function selectNodes(ids) {
    let redraw = false;
    for (const id of ids) for (const path of chains.get(id)) if (!open.has(path) && ids.length <= 40) { open.add(path); redraw = true; }
    if (redraw) await draw(ids[0]);
    if (!view) return;
    view.$(":selected").unselect();
    const found = view.collection(ids.map((id) => view.$id(id)).filter((n) => n.length).map((n) => n[0]));
    found.select();
    if (found.length) view.center(found);
    const first = graph.nodes.find((n) => n.id === ids[0]);
    if (first) describe(first);
  }

  function start() {
    head(); ladder(); findings(); targets(); comparison(); operators();
    const files = Object.keys(sources);
    for (const file of files) byId("file").append(make("option", { value: file }, short(file)));
    byId("file").addEventListener("change", (event) => showFile(event.target.value));
    const wanted = report.findings.find((f) => f.filename in sources);
    if (wanted) { showFile(wanted.filename); markLines([wanted.location.row]); } else if (files.length) showFile(files[0]);
    if (!graph) { byId("graph").append(make("p", { class: "dim", style: "padding: 10px" }, "No program was exported, so there is no graph.")); return; }
    byId("unfold").addEventListener("click", () => { for (const path of sizes.keys()) open.add(path); draw(); });
    byId("fold").addEventListener("click", () => { open.clear(); draw(); });
    byId("search").addEventListener("change", (event) => {
      const word = event.target.value.trim();
      const found = word ? graph.nodes.filter((n) => n.kind === "call_function" && (n.op.includes(word) || n.id.includes(word) || n.module.includes(word))) : [];
      if (found.length) selectNodes(found.slice(0, 40).map((n) => n.id));
    });
    if (graph.nodes.filter((n) => !hidden(n)).length <= 80) for (const path of sizes.keys()) open.add(path);
    // a first view with something to see: the outermost submodules are opened while the graph has only a few nodes
    for (let folded = visible().nodes.filter((n) => n.folded); folded.length && visible().nodes.length < 12; folded = visible().nodes.filter((n) => n.folded)) for (const n of folded) open.add(n.folded);
    draw();
  }
  start();
})();
