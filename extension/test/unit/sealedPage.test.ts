import { expect, test } from 'vitest';
import { sealed } from '../../src/views/sealedPage';

const META = '<meta http-equiv="Content-Security-Policy"';

test.each([
  '<!doctype html><html lang="en"><head><script>1</script></head><body></body></html>',
  '<html>\n<head >\n<script>1</script></head></html>',
  '<p>no head</p><script>1</script>',
  '<!-- <head> --><html><head><script>1</script></head></html>',
])('the policy comes before anything that could run: %s', (html) => {
  const page = sealed(html);
  expect(page.indexOf(META)).toBeGreaterThanOrEqual(0);
  expect(page.indexOf(META)).toBeLessThan(page.indexOf('<script>'));
  expect(page.slice(0, page.indexOf(META))).not.toContain('<!--');
});

test('a doctype stays first, so that the page is not drawn in quirks mode', () => {
  expect(sealed('<!DOCTYPE html><html><head></head></html>')).toMatch(/^<!DOCTYPE html><html><head><meta/);
});

test('the policy allows no network', () => {
  const policy = /content="([^"]*)"/.exec(sealed(''))?.[1] ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain('http');
  expect(policy).not.toContain('connect-src');
});
