// Tar archives: what `tar xf` unpacks, and what `tar cf` makes.

const BLOCK = 512;
const encoder = new TextEncoder(), decoder = new TextDecoder();
const padded = (size) => Math.ceil(size / BLOCK) * BLOCK;

/** The sum of a header's bytes, its own field counted as spaces. */
function checksum(header) {
  return header.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 32 : byte), 0);
}

/** The header of a file, in POSIX's format ustar. */
function header(path, size, seconds) {
  const block = new Uint8Array(BLOCK);
  const put = (at, text) => block.set(encoder.encode(text), at);
  const octal = (at, width, value) => put(at, value.toString(8).padStart(width - 1, '0'));
  const cut = encoder.encode(path).length <= 100 ? -1 : path.indexOf('/', Math.max(0, path.length - 101));
  const name = path.slice(cut + 1), folder = path.slice(0, Math.max(0, cut));
  if (encoder.encode(name).length > 100 || encoder.encode(folder).length > 155) throw new Error(`${path}: is too long for a tar`);
  put(0, name);
  octal(100, 8, 0o644);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, size);
  octal(136, 12, seconds);
  put(156, '0');
  put(257, 'ustar\0' + '00');
  put(345, folder);
  octal(148, 7, checksum(block));
  put(155, ' ');
  return block;
}

/** An archive of `files`, a Map from path to Uint8Array, in their order. */
export function tar(files, seconds = Math.floor(Date.now() / 1000)) {
  const size = [...files.values()].reduce((sum, bytes) => sum + BLOCK + padded(bytes.length), 2 * BLOCK);
  const whole = new Uint8Array(size);
  let at = 0;
  for (const [path, bytes] of files) {
    whole.set(header(path, bytes.length, seconds), at);
    whole.set(bytes, at + BLOCK);
    at += BLOCK + padded(bytes.length);
  }
  return whole;
}

/** The path among the records of a pax header (`27 path=a/b\n`), or null. */
function paxPath(bytes) {
  for (let at = 0; at < bytes.length;) {
    const length = parseInt(decoder.decode(bytes.subarray(at, at + 20)), 10);
    if (!(length > 0)) return null;
    const record = decoder.decode(bytes.subarray(at, at + length - 1)).replace(/^\d+ /, '');
    if (record.startsWith('path=')) return record.slice(5);
    at += length;
  }
  return null;
}

/** The files in an archive: a Map from path to Uint8Array, views of `bytes`. Throws Error for what is no tar, or only a part of one. */
export function untar(bytes) {
  const files = new Map();
  const text = (from, size) => decoder.decode(bytes.subarray(from, from + size)).split('\0')[0];
  let longer = null;
  for (let at = 0; at + BLOCK <= bytes.length && bytes[at] !== 0;) {
    const block = bytes.subarray(at, at + BLOCK);
    if (parseInt(text(at + 148, 8), 8) !== checksum(block)) throw new Error(`not a tar: no header at byte ${at}`);
    const size = parseInt(text(at + 124, 12), 8), kind = String.fromCharCode(block[156]);
    if (at + BLOCK + size > bytes.length) throw new Error(`the tar ends within ${longer ?? text(at, 100)}`);
    const content = bytes.subarray(at + BLOCK, at + BLOCK + size);
    const ustar = text(at + 257, 6) === 'ustar', folder = ustar ? text(at + 345, 155) : '';
    if (kind === 'x') longer = paxPath(content);
    else if (kind === 'L') longer = decoder.decode(content).split('\0')[0];
    else {
      const path = longer ?? (folder ? `${folder}/` : '') + text(at, 100);
      if (kind === '0' || kind === '\0') files.set(path.replace(/^(\.\/)+/, ''), content);
      if (kind !== 'g') longer = null;
    }
    at += BLOCK + padded(size);
  }
  return files;
}
