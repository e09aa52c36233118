"use strict";
/**
 * Where the nodes of a graph stand. ELK's cost grows with the square of what it gets at once, so each open submodule is
 * laid out by itself and stands in its parent as one box; a long sequence is cut into pieces, one below the other; and
 * what has the same shape (the layers of a transformer) is laid out once.
 */
const graphLayout = (() => {
  const MOST_AT_ONCE = 60;
  const GAP = 18, BETWEEN_LAYERS = 30, PADDING = 14, TITLE = 20;
  const OPTIONS = { "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.edgeRouting": "POLYLINE", "elk.spacing.nodeNode": String(GAP), "elk.layered.spacing.nodeNodeBetweenLayers": String(BETWEEN_LAYERS), "elk.padding": "[top=0,left=0,bottom=0,right=0]" };
  const elk = new ELK();
  const known = new Map(); // sizes and edges as text -> the promise of their places

  /** Nodes in the groups that they are `within`; a group of one item is no group. */
  function treeOf(nodes) {
    const root = { path: null, items: [], inner: new Map() };
    for (const node of nodes) {
      let group = root;
      for (const path of node.within) {
        if (!group.inner.has(path)) {
          const made = { path, items: [], inner: new Map() };
          group.inner.set(path, made);
          group.items.push(made);
        }
        group = group.inner.get(path);
      }
      group.items.push({ node, width: node.width, height: node.height });
    }
    const simplified = (item) => {
      if (item.node) return item;
      item.items = item.items.map(simplified);
      return item.items.length === 1 && item.path !== null ? item.items[0] : item;
    };
    return simplified(root);
  }

  /** Each edge in the innermost group that has both ends, between the items in which they lie. */
  function liftEdges(root, edges) {
    const chains = new Map(); // node id -> [group, index of the item in it] from the outermost
    const walk = (group, chain) => {
      group.edges = new Map();
      group.items.forEach((item, index) => {
        const longer = [...chain, [group, index]];
        if (item.node) chains.set(item.node.id, longer);
        else walk(item, longer);
      });
    };
    walk(root, []);
    for (const [from, to] of edges) {
      const a = chains.get(from), b = chains.get(to);
      let depth = 0;
      while (a[depth][1] === b[depth][1] && depth + 1 < Math.min(a.length, b.length)) depth += 1;
      const [start, end] = [a[depth][1], b[depth][1]];
      if (start !== end) a[depth][0].edges.set(`${start} ${end}`, [start, end]);
    }
  }

  /** The places of one piece's items and its size. */
  function piece(items, edges) {
    const shape = JSON.stringify([items.map((item) => [item.width, item.height]), edges]);
    if (!known.has(shape)) {
      const asked = { id: "piece", layoutOptions: OPTIONS, children: items.map((item, i) => ({ id: `n${i}`, width: item.width, height: item.height })), edges: edges.map(([a, b], i) => ({ id: `e${i}`, sources: [`n${a}`], targets: [`n${b}`] })) };
      known.set(shape, elk.layout(asked).then((laid) => ({ places: laid.children.map(({ x, y }) => ({ x, y })), width: Math.max(...laid.children.map((c) => c.x + c.width)), height: Math.max(...laid.children.map((c) => c.y + c.height)) })));
    }
    return known.get(shape);
  }

  /** Gives a group's items their `x` and `y` within it, and the group its size; innermost groups first. */
  async function place(group) {
    for (const item of group.items) if (!item.node) await place(item);
    const pieces = [];
    const edges = [...group.edges.values()];
    for (let first = 0; first < group.items.length; first += MOST_AT_ONCE) {
      const items = group.items.slice(first, first + MOST_AT_ONCE);
      const own = edges.filter(([a, b]) => a >= first && b >= first && a < first + items.length && b < first + items.length);
      pieces.push({ items, ...(await piece(items, own.map(([a, b]) => [a - first, b - first]))) });
    }
    const frame = group.path === null ? 0 : PADDING;
    const widest = Math.max(0, ...pieces.map((each) => each.width));
    let top = group.path === null ? 0 : PADDING + TITLE;
    for (const { items, places, width, height } of pieces) {
      items.forEach((item, index) => {
        item.x = frame + (widest - width) / 2 + places[index].x;
        item.y = top + places[index].y;
      });
      top += height + BETWEEN_LAYERS;
    }
    group.width = widest + 2 * frame;
    group.height = top - BETWEEN_LAYERS + frame;
  }

  /**
   * `nodes`: {id, width, height, within: the open submodules around it, outermost first}. Returns the centre of each node by
   * its id, and the boxes around open submodules, outer ones first.
   */
  return async (nodes, edges) => {
    const root = treeOf(nodes);
    liftEdges(root, edges);
    await place(root);
    const at = new Map();
    const boxes = [];
    const settle = (group, x, y) => {
      for (const item of group.items) {
        const left = x + item.x, top = y + item.y;
        if (item.node) at.set(item.node.id, { x: left + item.width / 2, y: top + item.height / 2 });
        else {
          boxes.push({ path: item.path, x: left + item.width / 2, y: top + item.height / 2, width: item.width, height: item.height });
          settle(item, left, top);
        }
      }
    };
    settle(root, 0, 0);
    return { at, boxes };
  };
})();
