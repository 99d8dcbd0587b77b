// The system calls of a WebAssembly module (WASI preview 1) over files in memory: what the engine's C library asks for.

const OK = 0, BADF = 8, EXIST = 20, INVAL = 28, ISDIR = 31, NOENT = 44, NOSYS = 52, NOTDIR = 54, NOTEMPTY = 55;
const FOLDER = 3, REGULAR = 4, CHARACTERS = 2;
const CREATE = 1, MUST_BE_FOLDER = 2, EXCLUSIVE = 4, TRUNCATE = 8, APPEND = 1;  // of path_open
const ROOT = 3;  // the descriptor of the one folder that is open from the start: /

/** A file, whose bytes grow by doubling. */
class File {
  constructor(inode, bytes = new Uint8Array()) {
    this.inode = inode;
    this.buffer = bytes;
    this.size = bytes.length;
    this.time = BigInt(Date.now()) * 1000000n;
  }
  get bytes() {
    return this.buffer.subarray(0, this.size);
  }
  resize(size) {
    if (size > this.buffer.length) {
      const grown = new Uint8Array(Math.max(size, 2 * this.buffer.length));
      grown.set(this.bytes);
      this.buffer = grown;
    }
    if (size > this.size) this.buffer.fill(0, this.size, size);
    this.size = size;
  }
  write(at, bytes) {
    if (at + bytes.length > this.size) this.resize(at + bytes.length);
    this.buffer.set(bytes, at);
  }
}

/** A module exits by throwing this. */
export class Exit extends Error {
  constructor(status) {
    super(`exit status ${status}`);
    this.status = status;
  }
}

/** `/a/./b/../c` and `a/c` as `/a/c`. */
function normal(path) {
  const parts = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return '/' + parts.join('/');
}

const parent = (path) => path.slice(0, path.lastIndexOf('/')) || '/';

export class Wasi {
  /** `print(text)` gets what goes to stdout and stderr. */
  constructor({args = [], env = {}, print = () => {}} = {}) {
    this.args = args;
    this.env = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    this.print = print;
    this.nodes = new Map([['/', new Set()]]);  // path -> File, or the names in a folder
    this.inodes = 1;
    this.folderInodes = new Map();
    this.open = new Map([[0, {}], [1, {}], [2, {}], [ROOT, {path: '/', node: this.nodes.get('/')}]]);
    this.imports = {wasi_snapshot_preview1: this.#calls()};
  }

  /** Before anything of the module is called. */
  attach(instance) {
    this.memory = instance.exports.memory;
  }

  /** Adds files, a Map from path to Uint8Array, with the folders they are in. The arrays are the files from then on. */
  add(files, folder = '/') {
    for (const [path, bytes] of files) {
      const whole = normal(`${folder}/${path}`);
      this.#makeFolders(parent(whole));
      this.#put(whole, new File(++this.inodes, bytes));
    }
  }

  /** Copies of the files below a folder: a Map from path, relative to it, to Uint8Array. */
  files(folder) {
    const prefix = normal(folder).replace(/\/$/, '') + '/';
    const found = new Map();
    for (const [path, node] of [...this.nodes].sort(([a], [b]) => (a < b ? -1 : 1)))
      if (node instanceof File && path.startsWith(prefix)) found.set(path.slice(prefix.length), node.bytes.slice());
    return found;
  }

  /** Deletes a folder with all that is in it. */
  remove(folder) {
    const prefix = normal(folder) + '/';
    for (const path of [...this.nodes.keys()]) if (path.startsWith(prefix)) this.nodes.delete(path);
    this.#take(normal(folder));
  }

  #put(path, node) {
    this.nodes.set(path, node);
    this.nodes.get(parent(path)).add(path.slice(path.lastIndexOf('/') + 1));
  }
  #take(path) {
    this.nodes.delete(path);
    this.nodes.get(parent(path))?.delete(path.slice(path.lastIndexOf('/') + 1));
  }
  #makeFolders(path) {
    if (this.nodes.has(path)) return;
    this.#makeFolders(parent(path));
    this.#put(path, new Set());
  }

  // ---- the module's memory

  get #view() {
    return new DataView(this.memory.buffer);
  }
  #bytes(at, size) {
    return new Uint8Array(this.memory.buffer, at, size);
  }
  #text(at, size) {
    return new TextDecoder().decode(this.#bytes(at, size));
  }
  /** The buffers of an iovec list. */
  #buffers(at, count) {
    const view = this.#view;
    return Array.from({length: count}, (_, i) => this.#bytes(view.getUint32(at + 8 * i, true), view.getUint32(at + 8 * i + 4, true)));
  }
  #strings(list, pointers, at) {
    const view = this.#view;
    for (const text of list) {
      view.setUint32(pointers, at, true);
      pointers += 4;
      const bytes = new TextEncoder().encode(text + '\0');
      this.#bytes(at, bytes.length).set(bytes);
      at += bytes.length;
    }
    return OK;
  }
  #sizes(list, count, bytes) {
    this.#view.setUint32(count, list.length, true);
    this.#view.setUint32(bytes, list.reduce((sum, text) => sum + new TextEncoder().encode(text).length + 1, 0), true);
    return OK;
  }
  #stat(path, node, at) {
    const view = this.#view, file = node instanceof File;
    this.#bytes(at, 64).fill(0);
    if (!file && !this.folderInodes.has(node)) this.folderInodes.set(node, ++this.inodes);
    view.setBigUint64(at + 8, BigInt(file ? node.inode : this.folderInodes.get(node)), true);
    view.setUint8(at + 16, file ? REGULAR : FOLDER);
    view.setBigUint64(at + 24, 1n, true);
    if (!file) return OK;
    view.setBigUint64(at + 32, BigInt(node.size), true);
    for (const field of [40, 48, 56]) view.setBigUint64(at + field, node.time, true);
    return OK;
  }
  #path(fd, at, size) {
    return normal(`${this.open.get(fd).path}/${this.#text(at, size)}`);
  }

  // ---- calls

  /** Reads or writes at a place; returns how many bytes, or -1 for no file. */
  #transfer(fd, buffers, at, writing) {
    const file = this.open.get(fd)?.node;
    if (!(file instanceof File)) return -1;
    let done = 0;
    for (const buffer of buffers) {
      if (writing) file.write(at + done, buffer);
      else if (at + done < file.size) buffer.set(file.buffer.subarray(at + done, Math.min(at + done + buffer.length, file.size)));
      done += writing ? buffer.length : Math.max(0, Math.min(buffer.length, file.size - at - done));
    }
    if (writing) file.time = BigInt(Date.now()) * 1000000n;
    return done;
  }
  #count(at, done) {
    if (done < 0) return BADF;
    this.#view.setUint32(at, done, true);
    return OK;
  }

  #rename(from, to) {
    const node = this.nodes.get(from), there = this.nodes.get(to);
    if (!node || !this.nodes.has(parent(to))) return NOENT;
    if (there instanceof Set && there.size > 0) return NOTEMPTY;
    if (there instanceof Set !== node instanceof Set && there) return there instanceof Set ? ISDIR : NOTDIR;
    if (node instanceof Set) {
      for (const [path, child] of [...this.nodes]) {
        if (!path.startsWith(from + '/')) continue;
        this.nodes.delete(path);
        this.nodes.set(to + path.slice(from.length), child);
      }
    }
    this.#take(from);
    this.#put(to, node);
    for (const open of this.open.values()) if (open.path === from) open.path = to;
    return OK;
  }

  #readFolder(fd, at, size, cookie, used) {
    const open = this.open.get(fd);
    if (!(open?.node instanceof Set)) return BADF;
    const names = [...open.node].sort();
    let filled = 0;
    for (let i = Number(cookie); i < names.length && filled < size; ++i) {
      const name = new TextEncoder().encode(names[i]), entry = new Uint8Array(24 + name.length), view = new DataView(entry.buffer);
      view.setBigUint64(0, BigInt(i + 1), true);
      view.setUint32(16, name.length, true);
      view.setUint8(20, this.nodes.get(normal(`${open.path}/${names[i]}`)) instanceof File ? REGULAR : FOLDER);
      entry.set(name, 24);
      this.#bytes(at + filled, Math.min(entry.length, size - filled)).set(entry.subarray(0, size - filled));
      filled += Math.min(entry.length, size - filled);
    }
    return this.#count(used, filled);
  }

  #openPath(fd, at, size, how, flags, result) {
    if (!this.open.has(fd)) return BADF;
    const path = this.#path(fd, at, size);
    let node = this.nodes.get(path);
    if (!node) {
      if (!(how & CREATE)) return NOENT;
      if (!(this.nodes.get(parent(path)) instanceof Set)) return NOENT;
      this.#put(path, (node = new File(++this.inodes)));
    } else if (how & EXCLUSIVE) {
      return EXIST;
    }
    if (how & MUST_BE_FOLDER && node instanceof File) return NOTDIR;
    if (how & TRUNCATE && node instanceof File) node.resize(0);
    let number = ROOT + 1;
    while (this.open.has(number)) ++number;
    this.open.set(number, {path, node, at: 0, append: (flags & APPEND) !== 0});
    this.#view.setUint32(result, number, true);
    return OK;
  }

  #seek(fd, offset, from, result) {
    const open = this.open.get(fd);
    if (!(open?.node instanceof File)) return BADF;
    const place = Number(offset) + [0, open.at, open.node.size][from];
    if (place < 0) return INVAL;
    open.at = place;
    this.#view.setBigUint64(result, BigInt(place), true);
    return OK;
  }

  #write(fd, list, count, result) {
    const buffers = this.#buffers(list, count), open = this.open.get(fd);
    if (fd === 1 || fd === 2) {
      for (const buffer of buffers) this.print(new TextDecoder().decode(buffer), fd);
      return this.#count(result, buffers.reduce((sum, buffer) => sum + buffer.length, 0));
    }
    if (open?.append) open.at = open.node.size;
    const done = this.#transfer(fd, buffers, open?.at, true);
    if (done > 0) open.at += done;
    return this.#count(result, done);
  }
  #read(fd, list, count, result) {
    const open = this.open.get(fd), done = this.#transfer(fd, this.#buffers(list, count), open?.at, false);
    if (done > 0) open.at += done;
    return this.#count(result, fd === 0 ? 0 : done);
  }

  #calls() {
    const exists = (fd) => (this.open.has(fd) ? OK : BADF);
    const clock = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6));
    return {
      args_get: (pointers, at) => this.#strings(this.args, pointers, at),
      args_sizes_get: (count, bytes) => this.#sizes(this.args, count, bytes),
      environ_get: (pointers, at) => this.#strings(this.env, pointers, at),
      environ_sizes_get: (count, bytes) => this.#sizes(this.env, count, bytes),
      clock_res_get: (id, at) => (this.#view.setBigUint64(at, 1000n, true), OK),
      clock_time_get: (id, precision, at) => (this.#view.setBigUint64(at, clock(), true), OK),
      fd_advise: exists,
      fd_close: (fd) => (this.open.delete(fd) ? OK : BADF),
      fd_datasync: exists,
      fd_sync: exists,
      fd_fdstat_get: (fd, at) => {
        if (!this.open.has(fd)) return BADF;
        const node = this.open.get(fd).node;
        this.#bytes(at, 24).fill(0);
        this.#bytes(at + 8, 16).fill(255);  // all rights
        this.#view.setUint8(at, node === undefined ? CHARACTERS : node instanceof File ? REGULAR : FOLDER);
        return OK;
      },
      fd_fdstat_set_flags: exists,
      fd_filestat_get: (fd, at) => {
        const open = this.open.get(fd);
        if (!open) return BADF;
        if (open.node) return this.#stat(open.path, open.node, at);
        this.#bytes(at, 64).fill(0);
        this.#view.setUint8(at + 16, CHARACTERS);
        return OK;
      },
      fd_filestat_set_size: (fd, size) => (this.open.get(fd)?.node instanceof File ? (this.open.get(fd).node.resize(Number(size)), OK) : BADF),
      fd_filestat_set_times: exists,
      fd_pread: (fd, list, count, at, result) => this.#count(result, this.#transfer(fd, this.#buffers(list, count), Number(at), false)),
      fd_pwrite: (fd, list, count, at, result) => this.#count(result, this.#transfer(fd, this.#buffers(list, count), Number(at), true)),
      fd_prestat_get: (fd, at) => {
        if (fd !== ROOT) return BADF;
        this.#view.setUint8(at, 0);
        this.#view.setUint32(at + 4, 1, true);
        return OK;
      },
      fd_prestat_dir_name: (fd, at) => (this.#bytes(at, 1).set([47]), OK),
      fd_read: (fd, list, count, result) => this.#read(fd, list, count, result),
      fd_readdir: (fd, at, size, cookie, used) => this.#readFolder(fd, at, size, cookie, used),
      fd_renumber: () => NOSYS,
      fd_seek: (fd, offset, from, result) => this.#seek(fd, offset, from, result),
      fd_tell: (fd, result) => this.#seek(fd, 0n, 1, result),
      fd_write: (fd, list, count, result) => this.#write(fd, list, count, result),
      path_create_directory: (fd, at, size) => {
        const path = this.#path(fd, at, size);
        if (this.nodes.has(path)) return EXIST;
        if (!(this.nodes.get(parent(path)) instanceof Set)) return NOENT;
        this.#put(path, new Set());
        return OK;
      },
      path_filestat_get: (fd, flags, at, size, result) => {
        const path = this.#path(fd, at, size), node = this.nodes.get(path);
        return node ? this.#stat(path, node, result) : NOENT;
      },
      path_filestat_set_times: () => OK,
      path_link: () => NOSYS,
      path_open: (fd, follow, at, size, how, base, inheriting, flags, result) => this.#openPath(fd, at, size, how, flags, result),
      path_readlink: (fd, at, size) => (this.nodes.has(this.#path(fd, at, size)) ? INVAL : NOENT),
      path_remove_directory: (fd, at, size) => {
        const path = this.#path(fd, at, size), node = this.nodes.get(path);
        if (!(node instanceof Set)) return node ? NOTDIR : NOENT;
        if (node.size > 0) return NOTEMPTY;
        this.#take(path);
        return OK;
      },
      path_rename: (fd, at, size, toFd, toAt, toSize) => this.#rename(this.#path(fd, at, size), this.#path(toFd, toAt, toSize)),
      path_symlink: () => NOSYS,
      path_unlink_file: (fd, at, size) => {
        const path = this.#path(fd, at, size), node = this.nodes.get(path);
        if (!(node instanceof File)) return node ? ISDIR : NOENT;
        this.#take(path);
        return OK;
      },
      poll_oneoff: () => NOSYS,
      proc_exit: (status) => {
        throw new Exit(status);
      },
      random_get: (at, size) => {
        for (let done = 0; done < size; done += 65536) crypto.getRandomValues(this.#bytes(at + done, Math.min(65536, size - done)));
        return OK;
      },
      sched_yield: () => OK,
      sock_shutdown: () => NOSYS,
    };
  }
}
