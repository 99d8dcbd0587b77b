// axe-core, which looks for what keeps people from using a page. It is fetched by name once and stays in build/.
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

const folder = fileURLToPath(new URL('../../build/web/axe', import.meta.url));
const script = `${folder}/node_modules/axe-core/axe.min.js`;

/** The script, or null where it cannot be had. */
export function axe() {
  if (!existsSync(script)) {
    mkdirSync(folder, {recursive: true});
    try {
      execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', folder, 'axe-core@4'], {stdio: 'ignore', timeout: 120000});
    } catch {
      return null;
    }
  }
  return readFileSync(script, 'utf8');
}

/** What it complains of on a page, a line each. */
export async function violations(page, source) {
  await page.evaluate(`${source}; true`);
  return page.evaluate(`axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.flatMap((v) =>
    v.nodes.map((n) => v.id + ': ' + n.target + ' ' + n.failureSummary)))`);
}
