import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vm from 'node:vm';
import { expect, test } from 'vitest';

// The report page's own scripts, as the page runs them; ELK runs here without a browser.
const ASSETS = path.resolve(__dirname, '../../../server/exportlens/export/page_assets');

interface Node {
  id: string;
  width: number;
  height: number;
  within: string[];
}
interface Box {
  path: string;
  x: number;
  y: number;
  width: number;
  height: number;
}
type Layout = (
  nodes: Node[],
  edges: [string, string][],
) => Promise<{ at: Map<string, { x: number; y: number }>; boxes: Box[] }>;

/** The page's layout, and how many nodes ELK was given at each call. */
function load(): { layout: Layout; calls: number[] } {
  const page = vm.createContext({ setTimeout, clearTimeout, console });
  vm.runInContext('var self = globalThis, window = globalThis;', page);
  vm.runInContext(fs.readFileSync(path.join(ASSETS, 'vendor/elk.bundled.js'), 'utf8'), page);
  const calls: number[] = [];
  page.seen = (count: number): number => calls.push(count);
  vm.runInContext(
    'const theirs = ELK; ELK = class { constructor() { this.elk = new theirs(); } ' +
      'layout(graph) { seen(graph.children.length); return this.elk.layout(graph); } };',
    page,
  );
  vm.runInContext(fs.readFileSync(path.join(ASSETS, 'layout.js'), 'utf8'), page);
  return { layout: vm.runInContext('graphLayout', page) as Layout, calls };
}

/** `layers` submodules of 12 operators each, the last ones in a submodule of their own. */
function transformer(layers: number): { nodes: Node[]; edges: [string, string][] } {
  const nodes: Node[] = [];
  for (let layer = 0; layer < layers; layer += 1) {
    for (let step = 0; step < 12; step += 1) {
      const within = ['encoder', `encoder.${layer}`, ...(step > 7 ? [`encoder.${layer}.mlp`] : [])];
      nodes.push({ id: `n${layer}_${step}`, width: 80, height: 28, within });
    }
  }
  const edges = nodes.slice(1).map((node, index): [string, string] => [nodes[index]?.id ?? '', node.id]);
  return { nodes, edges };
}

test('5,000 nodes are laid out in small pieces, and equal layers once', async () => {
  const { layout, calls } = load();
  const { nodes, edges } = transformer(420);
  const { at, boxes } = await layout(nodes, edges);
  expect(at.size).toBe(5040);
  expect(boxes.length).toBe(1 + 2 * 420);
  expect(Math.max(...calls)).toBeLessThanOrEqual(60);
  expect(calls.length).toBeLessThan(10);
});

test('nodes lie in the boxes of their submodules, and no two in one place', async () => {
  const { layout } = load();
  const { nodes, edges } = transformer(8);
  const { at, boxes } = await layout(nodes, edges);
  const around = new Map(boxes.map((box) => [box.path, box]));
  for (const node of nodes) {
    const place = at.get(node.id) ?? { x: NaN, y: NaN };
    for (const within of node.within) {
      const box = around.get(within);
      expect(box).toBeDefined();
      if (box === undefined) continue;
      expect(Math.abs(place.x - box.x) + node.width / 2).toBeLessThanOrEqual(box.width / 2);
      expect(Math.abs(place.y - box.y) + node.height / 2).toBeLessThanOrEqual(box.height / 2);
    }
  }
  const places = nodes.map((node) => at.get(node.id));
  for (const [index, one] of places.entries()) {
    for (const other of places.slice(index + 1)) {
      const apart =
        Math.abs((one?.x ?? 0) - (other?.x ?? 0)) >= 80 || Math.abs((one?.y ?? 0) - (other?.y ?? 0)) >= 28;
      expect(apart).toBe(true);
    }
  }
});

test('a flat sequence without submodules is cut, and keeps its order', async () => {
  const { layout, calls } = load();
  const nodes = Array.from({ length: 300 }, (_, i) => ({ id: `n${i}`, width: 80, height: 28, within: [] }));
  const edges = nodes.slice(1).map((node, i): [string, string] => [`n${i}`, node.id]);
  const { at, boxes } = await layout(nodes, edges);
  expect(boxes).toEqual([]);
  expect(Math.max(...calls)).toBeLessThanOrEqual(60);
  const heights = nodes.map((node) => at.get(node.id)?.y ?? NaN);
  expect(heights).toEqual([...heights].sort((a, b) => a - b));
});
