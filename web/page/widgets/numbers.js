// Numbers for people: a real minus sign, and as many digits as one reads.

/** The engine's text of a number with typographic minus and infinity. */
export function pretty(text) {
  return String(text).replace('inf', '∞').replace('nan', 'NaN').replace(/-/g, '−');
}

/** Five significant digits, without zeros at the end; names of numbers that JSON has none for pass. */
export function short(value) {
  if (value === null || value === undefined) return '—';
  if (typeof value !== 'number') return pretty(value);
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6)) return pretty(value.toExponential(2));
  return pretty(String(Number(value.toPrecision(5))));
}

/** Nested arrays as rows of a matrix: a number is one cell, a list one row. */
export function asRows(values) {
  if (!Array.isArray(values)) return [[values]];
  if (!Array.isArray(values[0])) return [values];
  return values.flatMap((row) => (Array.isArray(row[0]) ? asRows(row) : [row]));
}

/** In one line: 3, or [1, 2, 3], or the sizes of what is larger. */
export function brief(values, most = 3) {
  if (!Array.isArray(values)) return short(values);
  const shape = [];
  for (let inner = values; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
  if (shape.length === 1 && shape[0] <= most) return `[${values.map(short).join(', ')}]`;
  return shape.length === 1 ? `${shape[0]} numbers` : `[${shape.join(' × ')}]`;
}

/** A flat list as nested arrays of this shape. */
export function reshape(list, shape) {
  if (shape.length <= 1) return shape.length ? list : list[0];
  const size = list.length / shape[0];
  return Array.from({length: shape[0]}, (_, i) => reshape(list.slice(i * size, (i + 1) * size), shape.slice(1)));
}
