// The report page of a real export, in the browser: submodules fold and unfold, nodes and source lines lead to each other.

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PYTHON, requireInstalled } from './places';
import { EditorWindow } from './window';

// Two equal blocks of several operators each, around and behind operators of the model itself.
const SOURCE = `import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

    def forward(self, x):
        h = self.inner(x)
        return torch.sigmoid(h) * x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()

    def forward(self, x):
        y = self.second(self.first(x))
        z = torch.cumsum(y, dim=0)
        return z.amax(dim=1)
`;

/** The part of Cytoscape that the test asks where things are drawn; its container carries the instance. */
interface Drawn {
  $id(id: string): { renderedPosition(): { x: number; y: number }; renderedHeight(): number };
  $(selector: string): { map<T>(each: (node: { id(): string }) => T): T[] };
}

let folder: string;
let window: EditorWindow;

beforeAll(async () => {
  requireInstalled(PYTHON);
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'exportlens-report-'));
  fs.writeFileSync(path.join(folder, 'net.py'), SOURCE);
  const words = ['--inputs', '(torch.randn(3, 8),)', '--mode', 'non-strict', '--html', 'report.html'];
  execFileSync(PYTHON, ['-m', 'exportlens', 'export', 'net.py:Net', ...words], { cwd: folder });
  window = await EditorWindow.open('report');
  await window.page.goto(pathToFileURL(path.join(folder, 'report.html')).href);
  await drawn();
});

afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') {
    await window.picture('failed');
  }
});

afterAll(async () => {
  await window.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

test('submodules fold into one node each, and unfold by a click', async () => {
  await window.page.locator('#fold').click();
  await expect.poll(nodes).toContain('module:first');
  expect((await nodes()).filter((id) => id.startsWith('module:'))).toEqual(['module:first', 'module:second']);
  const folded = (await nodes()).length;
  await window.picture('folded');
  await clickNode('module:second');
  await expect.poll(nodes).not.toContain('module:second');
  expect(await nodes()).toContain('module:first');
  expect(await nodes()).toContain('module:second.inner');
  await clickFrame('second');
  await expect.poll(nodes).toHaveLength(folded);
  await window.page.locator('#unfold').click();
  await expect.poll(nodes).toContain('sigmoid_1');
  expect((await nodes()).filter((id) => id.startsWith('module:'))).toEqual([]);
  await window.picture('unfolded');
});

test('a node that was searched for leads to its line', async () => {
  await window.page.locator('#search').fill('cumsum');
  await window.page.keyboard.press('Enter');
  await expect.poll(selected).toEqual(['cumsum']);
  await window.page.locator('#source .row').first().click();
  await clickNode('cumsum');
  const marked = window.page.locator('#source .row.marked');
  await expect.poll(() => marked.count()).toBe(1);
  expect(await marked.textContent()).toContain('z = torch.cumsum(y, dim=0)');
  await expect.poll(() => window.page.locator('#detail').textContent()).toContain('aten.cumsum.default');
});

test('a line leads to its nodes, folded ones too', async () => {
  await window.page.locator('#fold').click();
  await expect.poll(nodes).toContain('module:first');
  await window.page.locator('#source .row', { hasText: 'torch.sigmoid(h) * x' }).click();
  await expect.poll(selected).toEqual(['mul', 'mul_1', 'sigmoid', 'sigmoid_1']);
  expect(await window.page.locator('#source .row.marked').textContent()).toContain('torch.sigmoid(h) * x');
  await window.picture('line-to-nodes');
});

async function drawn(): Promise<void> {
  await window.page.locator('#graph[data-drawn]').waitFor();
}

/** The ids of what is drawn, without the frames around open submodules. */
async function nodes(): Promise<string[]> {
  return (await ids('node')).filter((id) => !id.startsWith('box:'));
}

async function selected(): Promise<string[]> {
  return ids('node:selected');
}

async function ids(selector: string): Promise<string[]> {
  await drawn();
  return window.page
    .locator('#graph')
    .evaluate((graph, wanted) => {
      const { cy } = (graph as unknown as { _cyreg: { cy: Drawn } })._cyreg;
      return cy.$(wanted).map((node) => node.id());
    }, selector)
    .then((found) => found.sort());
}

/** Clicks a node where it is drawn. */
async function clickNode(id: string): Promise<void> {
  const { centre } = await placeOf(id);
  await window.page.locator('#graph').click({ position: centre });
}

/** Clicks the frame around an open submodule, where its title stands. */
async function clickFrame(submodule: string): Promise<void> {
  const { centre, height } = await placeOf(`box:${submodule}`);
  await window.page.locator('#graph').click({ position: { x: centre.x, y: centre.y - height / 2 + 6 } });
}

async function placeOf(id: string): Promise<{ centre: { x: number; y: number }; height: number }> {
  const graph = window.page.locator('#graph');
  await graph.scrollIntoViewIfNeeded();
  return graph.evaluate((element, wanted) => {
    const { cy } = (element as unknown as { _cyreg: { cy: Drawn } })._cyreg;
    const node = cy.$id(wanted);
    return { centre: node.renderedPosition(), height: node.renderedHeight() };
  }, id);
}
