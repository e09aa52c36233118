// The report's page comes from a run of the user's model; in the editor it may draw and talk to us, nothing else.

const POLICY = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  "script-src 'unsafe-inline'",
  'worker-src blob:',
  'img-src data: blob:',
  'font-src data:',
].join('; ');

/** The page with a content security policy in front of everything else in it: no network, no files. */
export function sealed(html: string): string {
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
  const doctype = /^\s*<!doctype[^>]*>/i.exec(html)?.[0] ?? '';
  const rest = html.slice(doctype.length);
  const head = /^\s*(?:<html[^>]*>\s*)?<head[^>]*>/i.exec(rest)?.[0];
  return head === undefined
    ? `${doctype}<head>${policy}</head>${rest}`
    : `${doctype}${head}${policy}${rest.slice(head.length)}`;
}
